import type { CallOptions, Hold, HoldState } from '../../client/index.ts'
import {
  invalid,
  type Key,
  LeaseholdError,
  type LeaseId,
  show,
  type Token,
} from '../../port/index.ts'

/**
 * A lock inside a lock that is already held. Both share one claim, so releasing the inner lock does
 * not release the claim. The inner lock ends when the outer lock ends.
 */
export function inner(
  keys: Key | readonly Key[],
  options: {
    readonly within?: Hold | undefined
    readonly mode?: unknown
    readonly limit?: unknown
  },
): Hold {
  const outer = options.within!
  const wanted = typeof keys === 'string' ? [keys] : keys
  if (!Array.isArray(outer?.keys)) {
    throw invalid(`within is ${show(outer)}: give a lock that is already held`)
  }
  const other = wanted.find((key) => !outer.keys.includes(key))
  if (other !== undefined) {
    throw invalid(
      `${show(other)} is not part of the outer lock on ${outer.keys.map(show).join(', ')}: lock all keys together, or this one without 'within'`,
    )
  }
  if (options.mode !== undefined || options.limit !== undefined) {
    throw invalid(
      `mode and limit cannot be combined with 'within': the outer lock's are used. Leave them out`,
    )
  }
  outer.assertHeld()
  return new InnerLock(outer, wanted)
}

class InnerLock implements Hold {
  readonly keys: readonly Key[]
  readonly #outer: Hold
  #released = false

  constructor(outer: Hold, keys: readonly Key[]) {
    this.#outer = outer
    this.keys = keys
  }

  get key(): Key {
    return this.keys[0]!
  }

  get lease(): LeaseId {
    return this.#outer.lease
  }

  get claimToken(): Token {
    return this.#outer.claimToken
  }

  get token(): Token {
    this.assertHeld()
    return this.#outer.token
  }

  get state(): HoldState {
    return this.#released ? 'released' : this.#outer.state
  }

  get held(): boolean {
    return this.state === 'held'
  }

  get signal(): AbortSignal {
    return this.#outer.signal
  }

  assertHeld(): void {
    if (this.#released) {
      throw new LeaseholdError(
        'claim-not-found',
        `${show(this.key)} (token ${this.claimToken}) was released: this inner lock cannot be used any more. Use the outer lock`,
      )
    }
    this.#outer.assertHeld()
  }

  remaining(): number {
    return this.#released ? 0 : this.#outer.remaining()
  }

  async renew(options?: CallOptions): Promise<void> {
    if (this.#released) this.assertHeld()
    await this.#outer.renew(options)
  }

  touch(): void {
    if (!this.#released) this.#outer.touch()
  }

  async update(
    value: string | undefined,
    key: Key = this.key,
    options?: CallOptions,
  ): Promise<void> {
    this.assertHeld()
    await this.#outer.update(value, key, options)
  }

  async release(): Promise<void> {
    this.#released = true
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#released = true
  }
}
