import { ByteWriter } from '../../encoding/index.ts'
import type { LeaseId } from '../../port/index.ts'
import { type Command, type EncodedCommands, encodeCommands, putCommand } from '../entry.ts'
import { tooLarge } from '../faults.ts'
import type { Machine } from '../state/index.ts'
import type { Call } from './call-deadlines.ts'
import type { Batch } from './own-entries.ts'

/** The most leases that one command ends or renews. */
const SLOTS_MAX = 50_000
/** The most bytes of a slot: the distance from the previous one, and the length of a run. */
const SLOT_BYTES = 6
/** The most bytes of a remaining life: a slot and a number. */
const LIFE_BYTES = SLOT_BYTES + 9
/** The most bytes of a lease id, which is two numbers. */
const ID_BYTES = 32

/** The content of the next entry. Copy the commands before you use the queue again. */
export interface Taken extends Pick<Batch, 'calls' | 'renewals'> {
  readonly commands: EncodedCommands
}

/** The calls that wait to be sent. As many as fit go into one entry. */
export class CallQueue {
  /** How many bytes of an entry its commands may take. */
  readonly room: number
  /** How many of these renewals may take, and ends of leases as many: the rest is for calls. */
  readonly roomForRenewals: number
  readonly #coalesce: number
  #calls: Call[] = []
  /** The encoded commands of these calls. */
  #commands = new ByteWriter()
  #renewals: Call[] = []
  #renewNotBefore = 0

  /** The most leases that one call can renew. */
  get renewMax(): number {
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

  /** When renewals are sent next; `Infinity` if none wait. */
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

  /** Adds a renewal. It waits until `renewAt`, so that one entry carries many. */
  addRenewal(call: Call): void {
    this.#renewals.push(call)
  }

  /** Takes back the calls of entries that will never be applied. */
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

  /** Copies the commands of these calls, which follow each other in `bytes`. */
  #copy(calls: readonly Call[], bytes: Uint8Array): void {
    let start = this.#commands.length
    this.#commands.bytes(bytes)
    for (const call of calls) {
      call.start = start
      start += call.size
    }
  }

  /** Takes what fits into the next entry. The replica's own proposals come first. */
  take(machine: Machine, proposals: readonly Command[], now: number): Taken {
    const own: Command[] = []
    const max = Math.min(SLOTS_MAX, Math.floor(this.roomForRenewals / SLOT_BYTES))
    const due = machine.timers.due(now, max)
    for (const cause of ['life', 'ttl'] as const) {
      const slots = due.filter((slot) => machine.timers.isAtEndOfLife(slot) === (cause === 'life'))
      if (slots.length > 0) own.push({ do: 'expire', slots, cause })
    }
    own.push(...proposals)
    const renewals: Call[] = []
    if (now >= this.#renewNotBefore) {
      const renew = this.#takeRenewals(machine, renewals, now)
      if (renew) own.push(renew)
      if (renewals.length > 0) this.#renewNotBefore = now + this.#coalesce
    }
    return { ...this.#takeCalls(encodeCommands(own)), renewals }
  }

  /** Adds as many calls to these commands as fit. */
  #takeCalls(own: EncodedCommands): Pick<Taken, 'commands' | 'calls'> {
    const calls: Call[] = []
    const parts = [...own.parts]
    const bytes = this.#commands.view()
    let { count } = own
    let room = parts.reduce((rest, { length }) => rest - length, this.room)
    let taken = 0
    // The range of commands that is not in a part yet. Usually there is one part.
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

  /** Drops the commands that were taken and keeps those that still wait. */
  #repack(bytes: Uint8Array): void {
    this.#commands = new ByteWriter()
    for (const call of this.#calls) {
      this.#copy([call], bytes.subarray(call.start, call.start + call.size))
    }
  }

  /** As many waiting renewals as fit, in one command. */
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
