import type { GrantedClaim, GrantedLease } from '../../kernel/index.ts'
import type { End, Key, Revision, Time, Token } from '../../port/index.ts'
import { Hash } from './hash.ts'

/**
 * A running checksum of everything that changes a replica's state: the changes of the kernel, the
 * renewals, the removals of members. Replicas that applied the same entries have the same checksum.
 * If their checksums differ, one of them is wrong.
 */
export class Checksum {
  readonly #hash = new Hash()

  /** From 0 to 2^32 - 1. */
  get value(): number {
    return this.#hash.value
  }

  set value(value: number) {
    this.#hash.value = value
  }

  granted(revision: Revision, slot: number, lease: GrantedLease): void {
    this.#begin(1, revision, slot)
    this.#hash.string(lease.holder)
    this.#hash.number(lease.ttl)
    this.#hash.number(lease.grace)
    this.#hash.number(lease.at)
    this.#hash.number(lease.endOfLife)
    this.#hash.number(lease.parent)
    for (const [name, value] of Object.entries(lease.labels ?? {})) {
      this.#hash.string(name)
      this.#hash.string(value)
    }
  }

  capped(revision: Revision, slot: number, at: Time, endOfLife: Time, end: End): void {
    this.#begin(2, revision, slot)
    this.#hash.number(at)
    this.#hash.number(endOfLife)
    this.#end(end)
  }

  ended(revision: Revision, slot: number, at: Time, end: End): void {
    this.#begin(3, revision, slot)
    this.#hash.number(at)
    this.#end(end)
  }

  claimed(revision: Revision, slot: number, claim: GrantedClaim): void {
    this.#begin(4, revision, slot)
    this.#hash.string(claim.key)
    this.#hash.number(claim.token)
    this.#hash.number(claim.at)
    this.#hash.number(claim.heldSince)
    this.#hash.number(claim.limit)
    this.#hash.string(claim.mode)
    this.#hash.string(claim.value ?? '')
  }

  updated(
    revision: Revision,
    slot: number,
    at: Time,
    key: Key,
    token: Token,
    value: string | undefined,
  ): void {
    this.#begin(5, revision, slot)
    this.#hash.number(at)
    this.#hash.string(key)
    this.#hash.number(token)
    this.#hash.string(value ?? '')
  }

  released(revision: Revision, slot: number, at: Time, key: Key, token: Token, end: End): void {
    this.#begin(6, revision, slot)
    this.#hash.number(at)
    this.#hash.string(key)
    this.#hash.number(token)
    this.#end(end)
  }

  answered(request: string): void {
    this.#hash.mix(7)
    this.#hash.string(request)
  }

  renewed(slot: number, position: number, lifeLeft: number): void {
    this.#hash.mix(8)
    this.#hash.mix(slot)
    this.#hash.number(position)
    this.#hash.number(lifeLeft)
  }

  /** The outcome of a command. Other details, such as who holds a busy key, are in the state. */
  carriedOut(outcome: string): void {
    this.#hash.mix(9)
    this.#hash.string(outcome)
  }

  #begin(kind: number, revision: Revision, slot: number): void {
    this.#hash.mix(kind)
    this.#hash.number(revision)
    this.#hash.mix(slot)
  }

  #end({ reason, by = '', why = '' }: End): void {
    this.#hash.string(reason)
    this.#hash.string(by)
    this.#hash.string(why)
  }
}
