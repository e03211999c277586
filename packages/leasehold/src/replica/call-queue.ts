import { ByteWriter } from '../encoding/index.ts'
import type { LeaseId } from '../port/index.ts'
import type { Call } from './call-deadlines.ts'
import { type Command, type EncodedCommands, encodeCommands, putCommand } from './entry.ts'
import { tooLarge } from './faults.ts'
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

/** What goes into the next entry. The commands are to be copied before the next call of the queue. */
export interface Taken extends Pick<Batch, 'calls' | 'renewals'> {
  readonly commands: EncodedCommands
}

/** The calls that wait to be sent. All that fit go into one entry. */
export class CallQueue {
  /** The bytes of an entry that commands may take. */
  readonly room: number
  /** Those that renewals may take, and those that ends of leases may: the others are for calls. */
  readonly roomForRenewals: number
  readonly #coalesce: number
  #calls: Call[] = []
  /** The commands of these calls. */
  #commands = new ByteWriter()
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

  /** Adds a call with its command, or without one if it only reads. */
  add(call: Call, command?: Command): void {
    if (this.#calls.length === 0) this.#commands.clear()
    call.start = this.#commands.length
    if (command) putCommand(this.#commands, command)
    call.size = this.#commands.length - call.start
    if (call.size <= this.room) this.#calls.push(call)
    else {
      this.#commands.cut(call.start)
      call.fail(tooLarge(call.size, this.room))
    }
  }

  /** Renewals wait for others to go with them, until `renewAt`. */
  addRenewal(call: Call): void {
    this.#renewals.push(call)
  }

  /** These were sent in entries that never will be applied. */
  putBack(batches: readonly Batch[]): void {
    const calls = batches.flatMap((batch) => batch.calls)
    const renewals = batches.flatMap((batch) => batch.renewals)
    for (const call of [...calls, ...renewals]) call.isSent = false
    if (this.#calls.length === 0) this.#commands.clear()
    for (const batch of batches) {
      const size = batch.calls.reduce((sum, call) => sum + call.size, 0)
      this.#copy(batch.calls, batch.bytes.subarray(batch.bytes.length - size))
    }
    this.#calls = [...calls, ...this.#calls]
    this.#renewals = [...renewals, ...this.#renewals]
  }

  /** Copies the commands of these calls, which are one after the other in `bytes`. */
  #copy(calls: readonly Call[], bytes: Uint8Array): void {
    let start = this.#commands.length
    this.#commands.bytes(bytes)
    for (const call of calls) {
      call.start = start
      start += call.size
    }
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
    return { ...this.#takeCalls(encodeCommands(own)), renewals }
  }

  /** Adds the calls that there is room for to these commands. */
  #takeCalls(own: EncodedCommands): Pick<Taken, 'commands' | 'calls'> {
    const calls: Call[] = []
    const parts = [...own.parts]
    const bytes = this.#commands.view()
    let { count } = own
    let room = parts.reduce((rest, { length }) => rest - length, this.room)
    let taken = 0
    // Where the commands begin and end that are not in a part yet. Mostly all are one part.
    let [from, to] = [0, 0]
    for (; taken < this.#calls.length; taken++) {
      const call = this.#calls[taken]!
      if (call.isSettled) continue
      if (call.size > room) break
      room -= call.size
      // A read has no command: it only waits for its entry.
      call.isSent = call.size > 0
      call.at = count
      calls.push(call)
      if (!call.isSent) continue
      count++
      if (call.start !== to) {
        parts.push(bytes.subarray(from, to))
        from = call.start
      }
      to = call.start + call.size
    }
    parts.push(bytes.subarray(from, to))
    this.#calls.splice(0, taken)
    if (this.#calls.length > 0) this.#repack(bytes)
    return { commands: { count, parts }, calls }
  }

  /** Forgets the commands that were taken, if others wait still. */
  #repack(bytes: Uint8Array): void {
    this.#commands = new ByteWriter()
    for (const call of this.#calls) {
      this.#copy([call], bytes.subarray(call.start, call.start + call.size))
    }
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
      const asked = call.renews
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
