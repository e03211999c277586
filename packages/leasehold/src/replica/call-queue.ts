import type { LeaseId } from '../port/index.ts'
import type { Call } from './call-deadlines.ts'
import { type Command, encodeCommand } from './entry.ts'
import type { Machine } from './machine.ts'
import type { Batch } from './own-entries.ts'

/** So many leases are ended or renewed by one command at most. */
const SLOTS_MAX = 50_000
/** A slot takes no more bytes: the distance from the one before, and the length of a run. */
const SLOT_BYTES = 6
/** The rest of a life takes no more: a slot, and a number. */
const LIFE_BYTES = SLOT_BYTES + 9
/** Nor does the id of a lease: it is two numbers. */
const ID_BYTES = 32

/** What goes into the next entry. */
export interface Taken extends Pick<Batch, 'calls' | 'renewals'> {
  readonly commands: readonly Uint8Array[]
}

/** The calls that wait to be sent. All that fit go into one entry. */
export class CallQueue {
  /** The bytes of an entry that commands may take. */
  readonly room: number
  /** Those that renewals may take, and those that ends of leases may: the others are for calls. */
  readonly roomForRenewals: number
  readonly #coalesce: number
  #calls: Call[] = []
  #renewals: Call[] = []
  #renewNotBefore = 0

  /** So many leases at most can be renewed by one call. */
  get renewMost(): number {
    return Math.max(1, Math.floor(this.roomForRenewals / ID_BYTES))
  }

  constructor(room: number, coalesce: number) {
    this.room = room
    this.roomForRenewals = Math.floor(room / 3)
    this.#coalesce = coalesce
  }

  get isEmpty(): boolean {
    return this.#calls.length === 0
  }

  /** When renewals are sent next; infinite if none are waiting. */
  get renewAt(): number {
    return this.#renewals.length > 0 ? this.#renewNotBefore : Infinity
  }

  add(call: Call): void {
    this.#calls.push(call)
  }

  /** Renewals wait for others to go with them, until `renewAt`. */
  addRenewal(call: Call): void {
    this.#renewals.push(call)
  }

  /** These were sent in entries that never will be applied. */
  putBack(batches: readonly Batch[]): void {
    const calls = batches.flatMap((batch) => batch.calls.map(({ call }) => call))
    const renewals = batches.flatMap((batch) => batch.renewals)
    for (const call of [...calls, ...renewals]) call.isSent = false
    this.#calls = [...calls, ...this.#calls]
    this.#renewals = [...renewals, ...this.#renewals]
  }

  /** Takes what the next entry has room for: what this replica has to say itself comes first. */
  take(machine: Machine, say: readonly Command[], now: number): Taken {
    const own: Command[] = []
    const most = Math.min(SLOTS_MAX, Math.floor(this.roomForRenewals / SLOT_BYTES))
    const due = machine.timers.due(now, most)
    for (const over of ['life', 'ttl'] as const) {
      const slots = due.filter((slot) => machine.timers.isAtEndOfLife(slot) === (over === 'life'))
      if (slots.length > 0) own.push({ do: 'expire', slots, over })
    }
    own.push(...say)
    const renewals: Call[] = []
    if (now >= this.#renewNotBefore) {
      const renew = this.#takeRenewals(machine, renewals, now)
      if (renew) own.push(renew)
      if (renewals.length > 0) this.#renewNotBefore = now + this.#coalesce
    }
    const commands = own.map(encodeCommand)
    const calls = this.#takeCalls(commands)
    return { commands, calls, renewals }
  }

  #takeCalls(commands: Uint8Array[]): Batch['calls'] {
    const calls: { call: Call; at: number }[] = []
    let bytes = commands.reduce((sum, { length }) => sum + length, 0)
    let taken = 0
    for (; taken < this.#calls.length; taken++) {
      const call = this.#calls[taken]!
      if (call.isSettled) continue
      const command = call.asks as Uint8Array
      bytes += command.length
      if (bytes > this.room) break
      // A read has no command: it only waits for its entry.
      call.isSent = command.length > 0
      calls.push({ call, at: commands.length })
      if (call.isSent) commands.push(command)
    }
    this.#calls.splice(0, taken)
    return calls
  }

  /** All that are waiting and have room, as one command. */
  #takeRenewals({ kernel, timers }: Machine, taken: Call[], now: number): Command | undefined {
    const slots = new Set<number>()
    const ids: LeaseId[] = []
    let bytes = 0
    let at = 0
    for (; at < this.#renewals.length && slots.size < SLOTS_MAX; at++) {
      const call = this.#renewals[at]!
      if (call.isSettled) continue
      const asked = call.asks as readonly LeaseId[]
      const before = bytes
      for (const id of asked) {
        const slot = kernel.bySlot.slotOf(id)
        bytes += slot < 0 ? Math.max(ID_BYTES, 3 * id.length) : SLOT_BYTES
        if (slot >= 0 && timers.lifeLeft(slot, now) !== Infinity) bytes += LIFE_BYTES
      }
      if (before > 0 && bytes > this.roomForRenewals) break
      call.isSent = true
      taken.push(call)
      for (const id of asked) {
        const slot = kernel.bySlot.slotOf(id)
        if (slot >= 0) slots.add(slot)
        else ids.push(id)
      }
    }
    this.#renewals.splice(0, at)
    if (taken.length === 0) return undefined
    const rising = [...slots].sort((one, other) => one - other)
    const lives = new Map<number, number>()
    for (const slot of rising) {
      const left = timers.lifeLeft(slot, now)
      if (left !== Infinity) lives.set(slot, left)
    }
    return { do: 'renew', slots: rising, lives, ids }
  }
}
