import type { Ahead, Key, Time, Token } from '../../port/index.ts'

/** Why something was not free: who is ahead of us. As it was when the store answered. */
export class Conflict {
  readonly key: Key
  /** Who holds it, with which token and which value. */
  readonly holder: string
  readonly token: Token
  readonly value: string | undefined
  /** Since when, and until when unless it is renewed: on the store's clock, to show to people. */
  readonly since: Time
  readonly until: Time
  /** How many hold it or wait for it. */
  readonly ahead: number

  constructor({ key, count, first }: Ahead) {
    this.key = key
    this.holder = first.holder
    this.token = first.token
    this.value = first.value
    this.since = first.heldSince ?? first.claimedAt
    this.until = first.until
    this.ahead = count
  }
}
