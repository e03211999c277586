import type { LeaseId, Observer, OwnClaim, Token } from '../../port/index.ts'
import type { Stand } from './answers.ts'
import { unknown } from './faults.ts'
import { endOf, RS, US } from './fields.ts'
import { OpenWatch } from './open-watch.ts'

/** Watches one lease: first tells how it stands, then what is published to it. */
export class LeaseWatch extends OpenWatch {
  readonly lease: LeaseId
  /** What was heard before it was known how things stood. */
  #early: string[] | undefined = []
  /** The revision of the first notice: it has told what was before. */
  #since = 0
  /** Claims of which it is not known here that they hold, and how many keys they are on. */
  readonly #waiting = new Map<Token, number>()
  /** Claims of which it was told that they hold before the answer said that they wait. */
  readonly #earlyHolds = new Set<Token>()

  constructor(lease: LeaseId, observer: Observer, closed: () => void) {
    super(observer, closed)
    this.lease = lease
  }

  /** Before its first notice nobody may ask how things stand but who knows that it hears. */
  get isWaiting(): boolean {
    return this.#early === undefined && this.#waiting.size > 0
  }

  waits(token: Token, keys: number): void {
    if (!this.#earlyHolds.delete(token)) this.#waiting.set(token, keys)
  }

  /** How things stand: the first notice, and later what no message may have told. */
  stands({ revision, claims, end }: Stand): void {
    if (claims === undefined) {
      this.tell({ type: 'gone', end })
      return
    }
    if (this.#early === undefined) {
      this.#standsAgain(revision, claims)
      return
    }
    for (const [token, keys] of countKeys(claims, false)) this.#waiting.set(token, keys)
    this.#since = revision
    this.tell({ type: 'standing', revision, claims })
    const early = this.#early
    this.#early = undefined
    for (const text of early) this.#tellAll(text)
  }

  #standsAgain(revision: number, claims: readonly OwnClaim[]): void {
    for (const [token, keys] of countKeys(claims, true)) {
      // With a key less than before, it may have lost the one that it waited for: then it never held
      // all of them. Whoever watches anew learns what is left.
      if (keys < (this.#waiting.get(token) ?? 0)) {
        this.interrupt(unknown('a claim that waited has lost a key: watch anew'))
        return
      }
      this.#holds(revision, token)
    }
    for (const [token, keys] of countKeys(claims, false)) {
      if (this.#waiting.has(token)) this.#waiting.set(token, keys)
    }
    this.#forget(revision, new Set(claims.map(({ token }) => token)))
  }

  hear(text: string): void {
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
      this.tell({ type: 'removed', revision, key: first!, token, end: endOf(third!)! })
    } else if (kind === 'c') {
      this.tell({ type: 'capped', remaining: Number(first), end: endOf(second!) })
    } else this.tell({ type: 'gone', end: endOf(first!) })
  }

  #holds(revision: number, token: Token, isNews = false): void {
    const waited = this.#waiting.delete(token)
    if (!waited && isNews) this.#earlyHolds.add(token)
    if (waited || isNews) this.tell({ type: 'holds', revision, token })
  }

  /** What was released by its holder is told to nobody: of that it is found out here. */
  #forget(revision: number, standing: ReadonlySet<Token>): void {
    for (const tokens of [this.#waiting, this.#earlyHolds]) {
      for (const token of tokens.keys())
        if (token <= revision && !standing.has(token)) tokens.delete(token)
    }
  }
}

/** On how many keys each claim is that holds, or that waits. */
function countKeys(claims: readonly OwnClaim[], isHeld: boolean): Map<Token, number> {
  const counts = new Map<Token, number>()
  for (const { token, holds } of claims) {
    if (holds === isHeld) counts.set(token, (counts.get(token) ?? 0) + 1)
  }
  return counts
}
