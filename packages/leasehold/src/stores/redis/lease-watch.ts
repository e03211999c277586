import type { LeaseId, Observer, Token } from '../../port/index.ts'
import type { Stand } from './answers.ts'
import { endOf, RS, US } from './fields.ts'
import { OpenWatch } from './open-watch.ts'

/** Watches one lease: first tells how it stands, then what is published to it. */
export class LeaseWatch extends OpenWatch {
  readonly lease: LeaseId
  /** What was heard before it was known how things stood. */
  #early: string[] | undefined = []
  /** The revision of the first notice: it has told what was before. */
  #since = 0
  /** Claims of which it is not known here that they hold. */
  readonly #waiting = new Set<Token>()
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

  waits(token: Token): void {
    if (!this.#earlyHolds.delete(token)) this.#waiting.add(token)
  }

  /** How things stand: the first notice, and later what no message may have told. */
  stands({ revision, claims, end }: Stand): void {
    if (claims === undefined) {
      this.tell({ type: 'gone', end })
      return
    }
    if (this.#early === undefined) {
      for (const { token, holds } of claims) if (holds) this.#holds(revision, token)
      this.#forget(revision, new Set(claims.map(({ token }) => token)))
      return
    }
    for (const { token, holds } of claims) if (!holds) this.#waiting.add(token)
    this.#since = revision
    this.tell({ type: 'standing', revision, claims })
    const early = this.#early
    this.#early = undefined
    for (const text of early) this.#tellAll(text)
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
      for (const token of tokens)
        if (token <= revision && !standing.has(token)) tokens.delete(token)
    }
  }
}
