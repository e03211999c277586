import type { LeaseId, Observer, OwnClaim, Token } from '../../../port/index.ts'
import type { Standing } from '../calls/answers.ts'
import { endOf, RS, US } from '../calls/fields.ts'
import { unknown } from '../faults.ts'
import { OpenWatch } from './open-watch.ts'

/** Watches one lease: first reports its claims, then what is published for it. */
export class LeaseWatch extends OpenWatch {
  readonly lease: LeaseId
  /** Messages that arrived before the first notice. */
  #early: string[] | undefined = []
  /** The revision of the first notice, which includes everything before. */
  #since = 0
  /** Claims that are not known to hold yet, and on how many keys they are. */
  readonly #waiting = new Map<Token, number>()
  /** Claims reported as holding before the answer said that they wait. */
  readonly #earlyHolds = new Set<Token>()

  constructor(lease: LeaseId, observer: Observer, closed: () => void) {
    super(observer, closed)
    this.lease = lease
  }

  /** Before the first notice, only a caller that is already subscribed may read the claims. */
  get isWaiting(): boolean {
    return this.#early === undefined && this.#waiting.size > 0
  }

  waits(token: Token, keys: number): void {
    if (!this.#earlyHolds.delete(token)) this.#waiting.set(token, keys)
  }

  /** The claims of the lease: the first notice, and later what a lost message may have reported. */
  onStanding({ revision, claims, end }: Standing): void {
    if (claims === undefined) {
      this.notify({ type: 'gone', end })
      return
    }
    if (this.#early === undefined) {
      this.#standsAgain(revision, claims)
      return
    }
    for (const [token, keys] of countKeys(claims, false)) this.#waiting.set(token, keys)
    this.#since = revision
    this.notify({ type: 'standing', revision, claims })
    const early = this.#early
    this.#early = undefined
    for (const text of early) this.#tellAll(text)
  }

  #standsAgain(revision: number, claims: readonly OwnClaim[]): void {
    for (const [token, keys] of countKeys(claims, true)) {
      // If it is on one key less than before, that may be the key that it waited for: then it never held
      // all of them. A new watch reports what is left.
      if (keys < (this.#waiting.get(token) ?? 0)) {
        this.interrupt(unknown('a claim that waited has lost a key: open a new watch'))
        return
      }
      this.#holds(revision, token)
    }
    for (const [token, keys] of countKeys(claims, false)) {
      if (this.#waiting.has(token)) this.#waiting.set(token, keys)
    }
    this.#forget(revision, new Set(claims.map(({ token }) => token)))
  }

  receive(text: string): void {
    if (this.#early) this.#early.push(text)
    else this.#tellAll(text)
  }

  #tellAll(text: string): void {
    for (const one of text.split(RS)) {
      const [kind, number, ...rest] = one.split(US)
      const revision = Number(number)
      if (revision > this.#since) this.#tellOne(kind!, revision, rest)
    }
  }

  #tellOne(kind: string, revision: number, [first, second, third]: readonly string[]): void {
    if (kind === 'h') this.#holds(revision, Number(first), true)
    else if (kind === 'r') {
      const token = Number(second)
      this.#waiting.delete(token)
      this.#earlyHolds.delete(token)
      this.notify({ type: 'removed', revision, key: first!, token, end: endOf(third!)! })
    } else if (kind === 'c') {
      this.notify({ type: 'capped', remaining: Number(first), end: endOf(second!) })
    } else this.notify({ type: 'gone', end: endOf(first!) })
  }

  #holds(revision: number, token: Token, isPublished = false): void {
    const waited = this.#waiting.delete(token)
    if (!waited && isPublished) this.#earlyHolds.add(token)
    if (waited || isPublished) this.notify({ type: 'holds', revision, token })
  }

  /** A release by the holder is not published: it is found out here. */
  #forget(revision: number, standing: ReadonlySet<Token>): void {
    for (const tokens of [this.#waiting, this.#earlyHolds]) {
      for (const token of tokens.keys())
        if (token <= revision && !standing.has(token)) tokens.delete(token)
    }
  }
}

/** On how many keys each holding or waiting claim is. */
function countKeys(claims: readonly OwnClaim[], isHeld: boolean): Map<Token, number> {
  const counts = new Map<Token, number>()
  for (const { token, holds } of claims) {
    if (holds === isHeld) counts.set(token, (counts.get(token) ?? 0) + 1)
  }
  return counts
}
