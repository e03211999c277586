import { ByteWriter } from '../../encoding/index.ts'
import {
  type ChangeSink,
  type GrantedClaim,
  type GrantedLease,
  Kernel,
  type NoticeSink,
  type Refused,
} from '../../kernel/index.ts'
import type { Position } from '../../log/index.ts'
import type {
  Capped,
  End,
  Key,
  LeaseId,
  Limits,
  Renewed,
  Revision,
  Time,
  Token,
} from '../../port/index.ts'
import type { Command, Entry } from '../entry.ts'
import { checkSemantics } from '../faults.ts'
import { Checksum } from './checksum.ts'
import { Column } from './column.ts'
import { History } from './history.ts'
import { LeaseTimers } from './lease-timers.ts'
import { MemberTable } from './member-table.ts'
import { type MachineCopy, readSnapshot } from './snapshot-format.ts'

/** The version of the lease rules that this code follows. */
export const SEMANTICS = 1

/** The outcome of an entry. Only `applied` changes leases. */
export type Applied =
  /** It was applied, with these answers to its commands. */
  | { readonly outcome: 'applied'; readonly answers: readonly unknown[] }
  /** It was applied before: this is a second copy. */
  | { readonly outcome: 'repeated' }
  /** It belongs to another epoch, or its author is not a member. It will never be applied. */
  | { readonly outcome: 'ignored' }
  /** Its author was too far behind when it was appended, and must write it again. */
  | { readonly outcome: 'stale' }
  /** Its author has read entries that are not in this log, or no longer. */
  | { readonly outcome: 'diverged' }
  /** Its author has read the same log but has another state. `checksum` is this replica's. */
  | { readonly outcome: 'disputed'; readonly checksum: number }

/** How many earlier epochs are kept, to recognize their late entries. */
const EPOCHS_KEPT = 64

const REPEATED: Applied = { outcome: 'repeated' }
const IGNORED: Applied = { outcome: 'ignored' }
const STALE: Applied = { outcome: 'stale' }
const DIVERGED: Applied = { outcome: 'diverged' }

/**
 * The replicated state machine: a kernel, and the members of the log. Only entries of the log change
 * it, in their order, so it is the same in every replica at the same position. The exception is
 * `timers`, which decides when to propose the end of a lease; nothing that is applied depends on it.
 */
export class Machine {
  readonly timers = new LeaseTimers()
  readonly members = new MemberTable()
  readonly checksum = new Checksum()
  readonly history = new History()
  position: Position = 0
  /** The time of the log. It never goes back, and stands still while no entry is written. */
  time: Time = 0
  /** Changes when the log has lost entries; empty before the first entry. */
  epoch = ''
  /** All tokens of this epoch are above this revision. */
  floor: Revision = 0
  /** The version of the lease rules that applies now. */
  semantics = 0
  /** Earlier epochs, whose entries may still arrive late. */
  #epochs: string[] = []
  readonly #supports: number
  readonly #noticeSink: NoticeSink
  #kernel: Kernel | undefined
  /** The position at which each lease was granted or last renewed. */
  readonly #renewedPosition = new Column()
  /** How much of each lease's life was left by the last entry that stated it; `Infinity` if no limit. */
  readonly #lifeLeft = new Column()
  /** The position of the entry that is being applied. */
  #applying: Position = 0

  constructor(noticeSink: NoticeSink, supports = SEMANTICS) {
    this.#noticeSink = noticeSink
    this.#supports = supports
  }

  get kernel(): Kernel {
    if (this.#kernel === undefined) throw new Error('the log has no first entry yet')
    return this.#kernel
  }

  get isInitialized(): boolean {
    return this.#kernel !== undefined
  }

  /** The position at which the lease in this slot was granted or last renewed. */
  renewedPosition(slot: number): Position {
    return this.#renewedPosition.get(slot)
  }

  /** How much of the life of the lease in this slot was left by the last entry that stated it. */
  lifeLeft(slot: number): number {
    return this.#lifeLeft.get(slot)
  }

  /** A copy that can be written out while the machine continues. */
  copy(): MachineCopy {
    const bytes = new ByteWriter()
    bytes.string(this.epoch)
    bytes.string(JSON.stringify(this.#epochs))
    bytes.string(JSON.stringify(this.kernel.limits))
    bytes.float(this.time)
    bytes.integer(this.kernel.revision)
    bytes.integer(this.floor)
    bytes.integer(this.semantics)
    bytes.integer(this.checksum.value)
    this.members.put(bytes)
    this.history.put(bytes)
    return {
      position: this.position,
      head: bytes.view(),
      kernel: this.kernel.copy(),
      renewedPosition: this.#renewedPosition.copy(),
      lifeLeft: this.#lifeLeft.copy(),
    }
  }

  /** Loads a snapshot that was taken at this position. Every lease gets its full ttl. */
  restore(chunks: readonly Uint8Array[], position: Position, now: number): void {
    readSnapshot(chunks, {
      head: (bytes) => {
        const epoch = bytes.string()
        this.#epochs = JSON.parse(bytes.string()) as string[]
        const limits = JSON.parse(bytes.string()) as Limits
        this.time = bytes.float()
        this.#initialize(epoch, limits, bytes.integer())
        this.floor = bytes.integer()
        this.#useSemantics(bytes.integer())
        this.checksum.value = bytes.integer()
        this.members.take(bytes, now)
        this.history.take(bytes)
        return { kernel: this.kernel, time: this.time }
      },
      renewed: (slot, at, lifeLeft) => {
        this.#renewedPosition.set(slot, at)
        this.#lifeLeft.set(slot, lifeLeft)
      },
    })
    this.timers.now = now
    this.timers.restore(this.kernel, (slot) => this.lifeLeft(slot))
    this.position = position
  }

  /**
   * Applies the entry at this position; `undefined` is one that Leasehold did not write. `now` is the
   * time on this replica's own clock. Throws `unsupported` if this process does not know the rules.
   */
  apply(entry: Entry | undefined, position: Position, now: number): Applied {
    const applied = entry ? this.#apply(entry, position, now) : IGNORED
    this.position = position
    this.history.add(position, entry, this.checksum.value)
    return applied
  }

  #apply(entry: Entry, position: Position, now: number): Applied {
    const [first] = entry.commands
    const initializes = first?.do === 'initialize' && !this.isInitialized
    if (initializes) {
      this.#useSemantics(first.semantics)
      this.#initialize(entry.epoch, first.limits, first.above)
    }
    if (entry.epoch !== this.epoch) {
      // Two processes may start a log at the same time. The second one notices, and joins.
      const isHarmless = first?.do === 'initialize' || this.#epochs.includes(entry.epoch)
      return isHarmless ? IGNORED : DIVERGED
    }
    if (this.members.isRepeated(entry)) return REPEATED
    const objection = initializes ? undefined : this.#objection(entry, position)
    if (objection) return objection
    if (!this.members.admits(entry)) return IGNORED
    this.members.seen(entry, position, now)
    this.time = Math.max(this.time, entry.time)
    this.#applying = position
    this.timers.now = now
    const answers = entry.commands.map((command) => this.#carryOut(command, entry, position))
    for (const answer of answers) {
      if (answer) this.checksum.carriedOut((answer as { outcome?: string }).outcome ?? '')
    }
    return { outcome: 'applied', answers }
  }

  /**
   * An entry counts only if its author had read this log up to there and had the same state.
   * Otherwise its proposals would be about another history, without renewals that this log has.
   */
  #objection(entry: Entry, position: Position): Applied | undefined {
    const { asOf, history, checksum } = entry
    if (asOf < this.history.oldest) return STALE
    const mark = this.history.at(asOf)
    if (asOf >= position || mark?.history !== history) return DIVERGED
    return mark.checksum === checksum ? undefined : { outcome: 'disputed', checksum: mark.checksum }
  }

  #carryOut(command: Command, entry: Entry, position: Position): unknown {
    const kernel = this.kernel
    const { time } = this
    switch (command.do) {
      case 'grant':
        return kernel.grant(command.request, time)
      case 'claim':
        return kernel.claim(command.request, time)
      case 'release':
        return kernel.release(command.request, time)
      case 'update':
        return kernel.update(command.request, time)
      case 'revoke':
        return kernel.revoke(command.request, time)
      case 'renew':
        return this.#renew(command, entry)
      case 'expire':
        return this.#expire(command, entry)
      case 'leave':
        return this.members.remove([entry.member], position)
      case 'expel':
        return this.members.expel(command.members, entry.asOf, position)
      case 'recover':
        return this.#recover(command.above, entry.member, position)
      case 'upgrade':
        if (command.semantics <= this.members.semantics) this.#useSemantics(command.semantics)
        return undefined
      case 'initialize':
      case 'join':
        return undefined
    }
  }

  /** Applies this version of the rules from here on. */
  #useSemantics(semantics: number): void {
    checkSemantics(semantics, this.#supports)
    this.semantics = Math.max(this.semantics, semantics)
  }

  /**
   * The log has lost entries that a replica had applied. Their tokens are not given again. Renewals may
   * be among them, so every lease gets its full ttl from here on. Entries that were sent before are not
   * applied, because their authors may have seen lost entries: all members join again.
   */
  #recover(above: Revision, member: string, position: Position): undefined {
    this.#epochs = [...this.#epochs, this.epoch].slice(-EPOCHS_KEPT)
    this.epoch = member
    this.floor = Math.max(above, this.kernel.revision)
    this.kernel.skipTo(above, -1)
    this.checksum.carriedOut(member)
    this.members.removeAllBut(member, position)
    for (let slot = 0; slot < this.kernel.slots; slot++) {
      if (this.kernel.bySlot.born(slot) !== 0) this.#renewIn(slot, Infinity)
    }
    return undefined
  }

  #initialize(epoch: string, limits: Limits, revision: Revision): void {
    this.epoch = epoch
    this.floor = revision
    const changeSink = new MachineChangeSink(this.timers, this.checksum, {
      granted: (slot, lifeLeft) => {
        this.#renewedPosition.set(slot, this.#applying)
        this.#lifeLeft.set(slot, lifeLeft)
      },
      capped: (slot, lifeLeft) => this.#lifeLeft.set(slot, lifeLeft),
    })
    const noticeSink = this.#noticeSink
    this.#kernel = new Kernel({ limits, revision, changeSink, noticeSink, expiry: 'commanded' })
  }

  /** The answer for leases that the last applied entry renewed. */
  renewed(ids: readonly LeaseId[]): Renewed | Refused {
    const { bySlot } = this.kernel
    const answer = this.kernel.renew(ids, this.time)
    if (!('lost' in answer)) return answer
    const capped: Capped[] = []
    for (const lease of ids) {
      const slot = bySlot.slotOf(lease)
      const remaining = slot < 0 ? Infinity : this.timers.remaining(slot)
      if (remaining !== Infinity) capped.push({ lease, remaining, end: bySlot.cappedBy(slot) })
    }
    return { lost: answer.lost, capped }
  }

  #renew({ slots, lives, ids }: Extract<Command, { do: 'renew' }>, entry: Entry): undefined {
    for (const slot of slots) {
      if (this.#isSameLease(slot, entry)) this.#renewIn(slot, lives.get(slot) ?? Infinity)
    }
    for (const id of ids) {
      const slot = this.kernel.bySlot.slotOf(id)
      if (slot >= 0) this.#renewIn(slot, Infinity)
    }
    return undefined
  }

  /** `lifeLeft`: how much is left of its life, by the count of the member that renews it. */
  #renewIn(slot: number, lifeLeft: number): void {
    // Its life is over, and the answer says so: do not renew it.
    if (lifeLeft === 0) return
    this.kernel.bySlot.renew(slot, this.time)
    this.#renewedPosition.set(slot, this.#applying)
    this.#lifeLeft.set(slot, Math.min(this.#lifeLeft.get(slot), lifeLeft))
    this.timers.renewed(slot, lifeLeft, this.#lifeLeft.get(slot))
    this.checksum.renewed(slot, this.#applying, this.#lifeLeft.get(slot))
  }

  /** Ends each lease that was not renewed after the last entry that the proposer had applied. */
  #expire({ slots, cause }: Extract<Command, { do: 'expire' }>, entry: Entry): undefined {
    const due = slots.filter(
      (slot) => this.#isSameLease(slot, entry) && this.#renewedPosition.get(slot) <= entry.asOf,
    )
    this.kernel.bySlot.expire(due, this.time, cause)
    return undefined
  }

  /** Whether the slot still has the lease that the member saw: another one would be younger. */
  #isSameLease(slot: number, { revision }: Entry): boolean {
    const born = this.kernel.bySlot.born(slot)
    return born !== 0 && born <= revision
  }
}

/** Receives what the machine keeps of a lease in addition to the kernel. */
interface LeaseRecords {
  granted(slot: number, lifeLeft: number): void
  capped(slot: number, lifeLeft: number): void
}

/** Passes each change to the timers and the checksum. */
class MachineChangeSink implements ChangeSink {
  readonly #timers: LeaseTimers
  readonly #checksum: Checksum
  readonly #records: LeaseRecords

  constructor(timers: LeaseTimers, checksum: Checksum, records: LeaseRecords) {
    this.#timers = timers
    this.#checksum = checksum
    this.#records = records
  }

  granted(revision: Revision, slot: number, lease: GrantedLease): void {
    this.#records.granted(slot, lease.endOfLife - lease.at)
    this.#timers.granted(revision, slot, lease)
    this.#checksum.granted(revision, slot, lease)
  }

  capped(revision: Revision, slot: number, at: Time, endOfLife: Time, end: End): void {
    this.#records.capped(slot, endOfLife - at)
    this.#timers.capped(revision, slot, at, endOfLife)
    this.#checksum.capped(revision, slot, at, endOfLife, end)
  }

  ended(revision: Revision, slot: number, at: Time, end: End): void {
    this.#timers.ended(revision, slot, at, end)
    this.#checksum.ended(revision, slot, at, end)
  }

  claimed(revision: Revision, slot: number, claim: GrantedClaim): void {
    this.#checksum.claimed(revision, slot, claim)
  }

  updated(
    revision: Revision,
    slot: number,
    at: Time,
    key: Key,
    token: Token,
    value: string | undefined,
  ): void {
    this.#checksum.updated(revision, slot, at, key, token, value)
  }

  released(revision: Revision, slot: number, at: Time, key: Key, token: Token, end: End): void {
    this.#checksum.released(revision, slot, at, key, token, end)
  }

  answered(request: string): void {
    this.#checksum.answered(request)
  }

  tenure(): void {}
  remembered(): void {}
}
