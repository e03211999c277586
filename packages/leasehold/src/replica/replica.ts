import { type Clock, LeaseholdError, type LeaseId, type Revision } from '../port/index.ts'
import type { Outbox } from '../runner/index.ts'
import { Agreement } from './agreement.ts'
import { Alarm } from './alarm.ts'
import { Appender } from './appender.ts'
import { Author } from './author.ts'
import { CallDeadlines } from './call-deadlines.ts'
import { CallQueue } from './call-queue.ts'
import { CatchUp } from './catch-up.ts'
import { type Command, type Entry, encodeCommands, HEADER_BYTES } from './entry.ts'
import { mayBeDone, notRead } from './faults.ts'
import { LogFollower } from './log-follower.ts'
import { LostTail } from './lost-tail.ts'
import { type Applied, type Machine, SEMANTICS } from './machine.ts'
import type { ReplicaOptions } from './options.ts'
import { type Batch, OwnEntries } from './own-entries.ts'
import { Snapshots } from './snapshots.ts'

/** Members propose that a lease has ended one after the other, so that mostly the first one does. */
const STAGGER_MS = 10
const STAGGER_MAX = 5
/** A process that may not write tries again after so long to become a member. */
const JOIN_AGAIN_MS = 1000

type State = 'joining' | 'member' | 'closed'

/**
 * Runs the machine behind a log: follows the log and applies what is in it, appends what callers
 * ask for, and gives them their answers when their own entries have been applied.
 */
export class Replica {
  readonly #options: ReplicaOptions
  readonly #clock: Clock
  readonly #follower: LogFollower
  readonly #deadlines: CallDeadlines
  readonly #appender: Appender
  readonly #calls: CallQueue
  readonly #own = new OwnEntries()
  readonly #snapshots: Snapshots
  readonly #catchUp: CatchUp
  readonly #agreement: Agreement
  readonly #lost: LostTail
  readonly #alarm: Alarm
  readonly #author: Author
  #state: State = 'joining'
  #pumping = false
  /** The log is made longer, until it ends behind its snapshot: nothing else is sent meanwhile. */
  #isPassing = false
  /** When it must write something, so that the others do not take it for dead. */
  #beatAt = -Infinity
  #fault: LeaseholdError | undefined
  #joined: { resolve(): void; reject(error: unknown): void } | undefined

  constructor(options: ReplicaOptions) {
    const { log, clock, timeout } = options
    this.#options = options
    this.#clock = clock
    this.#follower = new LogFollower({
      ...{ log, clock, timeout, semantics: options.semantics ?? SEMANTICS },
      certain: () => this.#agreement.certain,
      applied: (entry, applied, bytes) => this.#applied(entry, applied, bytes),
      settled: () => this.#settled(),
      reloaded: (before) => this.#reloaded(before),
      lost: () => void this.#ahead(),
      stopped: (error) => this.#stop(error),
    })
    this.#appender = new Appender(log, clock)
    this.#deadlines = new CallDeadlines(clock, timeout, () => this.#appender.trouble)
    this.#snapshots = new Snapshots(log, clock, options.snapshotBytes)
    this.#catchUp = new CatchUp({
      ...{ log, clock, timeout },
      trouble: () => this.#follower.trouble,
      onBehind: () => {
        if (!this.#follower.isLoading) this.#follower.follow()
      },
    })
    this.#agreement = new Agreement({
      clock,
      members: () => this.machine.members,
      doubted: () => {
        this.#catchUp.pause()
        this.#beatAt = -Infinity
        this.#pumpSoon()
      },
      settled: () => this.#catchUp.resume(),
      outvoted: (error) => this.#stop(error),
    })
    this.#lost = new LostTail(clock, options.tokensAbove)
    // After a stall, what has arrived meanwhile is applied first: a renewal may be in it.
    this.#alarm = new Alarm(clock, () => this.#pumpSoon())
    this.#calls = new CallQueue(log.promises.entryBytes - HEADER_BYTES, options.coalesce)
    this.#author = new Author(() => this.#follower.clock.at(clock.now()))
  }

  get machine(): Machine {
    return this.#follower.machine
  }

  get outbox(): Outbox {
    return this.#follower.outbox
  }

  get #member(): string {
    return this.#author.member
  }

  /** Catches up with the log and joins it. */
  async open(): Promise<void> {
    const joined = new Promise<void>((resolve, reject) => {
      this.#joined = { resolve, reject }
    })
    // Whatever fails first is what the caller hears.
    joined.catch(() => {})
    try {
      await this.#follower.open()
      this.#catchUp.applied(this.machine.position)
      this.#snapshots.loaded(this.#follower.loaded)
      await Promise.race([this.#catchUp.caughtUp(), joined])
      this.#join()
      this.#pump()
      await joined
    } catch (error) {
      await this.close(new LeaseholdError('closed', 'the store could not be opened'))
      throw error
    }
  }

  /** Has a command carried out. Fulfilled with the kernel's answer, or rejected with its refusal. */
  propose(command: Command): Promise<unknown> {
    return this.#fault ? Promise.reject(this.#fault) : this.#call(command)
  }

  /** Renews leases, together with all others that are to be renewed about now. */
  renew(ids: readonly LeaseId[]): Promise<unknown> {
    if (this.#fault) return Promise.reject(this.#fault)
    const call = this.#deadlines.begin(ids)
    this.#calls.addRenewal(call)
    if (this.#clock.now() >= this.#calls.renewAt) this.#pumpSoon()
    else this.#arm()
    return call.promise
  }

  /** So many leases at most can be renewed by one call, whatever their ids. */
  get renewMost(): number {
    return this.#calls.renewMost
  }

  /** Fulfilled when everything has been applied that was acknowledged to anybody before this call. */
  async caughtUp(): Promise<void> {
    if (this.#fault) throw this.#fault
    if (!this.#options.log.promises.tailMayBeOld) return this.#catchUp.caughtUp()
    // A call without a command: when its entry has been applied, everything before it has.
    await this.#call().catch((error: unknown) => {
      throw notRead(error)
    })
  }

  async close(error: LeaseholdError): Promise<void> {
    if (this.#state === 'closed') return
    const isMember = this.#state === 'member' && !this.#agreement.isOpen
    this.#state = 'closed'
    this.#fault ??= error
    this.#joined?.reject(error)
    this.#deadlines.fail((call) => (call.isSent ? mayBeDone(error) : error))
    this.#catchUp.fail(error)
    this.#alarm.cancel()
    this.#appender.close()
    this.#follower.close(error)
    if (isMember) {
      // So that nobody waits until it is taken for dead. If it fails, that is what happens.
      const entry = this.#author.write(this.machine, encodeCommands([{ do: 'leave' }])).bytes
      await this.#options.log.append(entry).catch(() => {})
    }
    await this.#options.log.close()
  }

  #call(command?: Command): Promise<unknown> {
    const call = this.#deadlines.begin()
    this.#calls.add(call, command)
    this.#pumpSoon()
    return call.promise
  }

  #applied(entry: Entry, applied: Applied, bytes: number): void {
    this.#snapshots.grown(bytes)
    this.#lost.check(this.machine)
    // What is in the snapshot of the epoch before may be lost.
    if (entry.commands[0]?.do === 'recover') this.#snapshots.soon()
    const isOwn = entry.member === this.#member
    if (applied.outcome === 'diverged') {
      // Before it is a member, all that this replica has is from the log itself, and so is right.
      if (this.#state === 'member') this.#lostTail(entry.revision)
      else this.#lost.found(this.machine, entry.revision)
    } else if (!isOwn) this.#agreement.compared(entry, applied)
    if (isOwn) this.#ownApplied(entry.sequence, applied)
    else if (applied.outcome === 'applied') this.#own.applied(entry)
  }

  #settled(): void {
    const { machine } = this
    if (machine.isFounded) this.outbox.changed()
    this.#stayMember()
    this.#agreement.judge(false)
    this.#catchUp.applied(machine.position)
    if (this.#state === 'member' && !this.#agreement.isOpen) {
      this.#snapshots.consider(machine, machine.members.rank(this.#member))
    }
    this.#arm()
  }

  /** Something is wrong with the log, or with this replica: it serves nobody any more. */
  #stop(error: LeaseholdError): void {
    this.#joined?.reject(error)
    void this.close(error)
  }

  /** Entries are gone that this replica, or the author of an entry, has applied: reads all anew. */
  #lostTail(revision: Revision): void {
    if (this.#state === 'closed' || this.#follower.isLoading) return
    this.#lost.found(this.machine, revision)
    this.#catchUp.pause()
    void this.#follower.reload()
  }

  /** The log ends before what was applied. */
  async #ahead(): Promise<void> {
    if (this.#state === 'member' || this.machine.position > this.#follower.loaded) {
      this.#lostTail(0)
      return
    }
    // It ends before the snapshot even: positions must pass it, or nobody would read what comes.
    this.#lost.found(this.machine, 0)
    if (this.#isPassing) return
    this.#isPassing = true
    await this.#lost.pass(
      this.#options.log,
      this.machine.position,
      this.#author.write(this.machine, encodeCommands([])).bytes,
    )
    this.#isPassing = false
    if (this.#state === 'closed' || this.#follower.isLoading) return
    this.#joinAgain()
    this.#follower.follow()
  }

  #reloaded(before: Machine): void {
    const { machine } = this
    this.#snapshots.loaded(this.#follower.loaded)
    this.#agreement.reset()
    this.#lost.compare(before, machine)
    this.#own.loaded(machine)
    if (this.#lost.isLost || this.#state === 'joining') this.#joinAgain()
    else this.#stayMember()
    this.#catchUp.applied(machine.position)
    if (this.#state === 'member') this.#catchUp.resume()
    this.#arm()
  }

  #ownApplied(sequence: number, applied: Applied): void {
    if (applied.outcome === 'repeated') return
    if (applied.outcome !== 'applied') {
      // Somebody else founded the log, a member was removed that it had not seen, or it was too
      // late: once more.
      if (this.#state === 'joining') this.#joinAgain()
      else this.#sendAgain(sequence)
      return
    }
    const batch = this.#own.take(sequence)
    if (batch === undefined) return
    this.#answer(batch, applied.answers)
    if (this.#state === 'joining') {
      this.#state = 'member'
      this.#calls.putBack(this.#own.takeEarlier())
      this.#joined?.resolve()
      if (!this.#agreement.isOpen) this.#catchUp.resume()
    }
    if (!this.#calls.isEmpty) this.#pump()
  }

  #answer({ calls, renewals }: Batch, answers: readonly unknown[]): void {
    const renewed = renewals.map((call) => this.machine.renewed(call.renews))
    this.#agreement.tell(() => {
      for (const call of calls) call.answer(answers[call.at])
      for (const [at, call] of renewals.entries()) call.answer(renewed[at])
    })
  }

  /** The entry will never be applied: its calls go into another one. */
  #sendAgain(sequence: number): void {
    const batch = this.#own.take(sequence)
    if (batch) this.#calls.putBack([batch])
    this.#pumpSoon()
  }

  /** Joins again under another name, if others have taken this one for dead. */
  #stayMember(): void {
    if (this.#state !== 'member' || this.machine.members.has(this.#member)) return
    this.#joinAgain()
    this.#calls.putBack(this.#own.takeEarlier())
  }

  #joinAgain(): void {
    this.#join()
    this.#pumpSoon()
  }

  #join(): void {
    this.#state = 'joining'
    this.#author.rename(this.#options.random.id())
    this.#own.rename()
  }

  #pumpSoon(): void {
    if (this.#pumping) return
    this.#pumping = true
    this.#clock.defer(() => {
      this.#pumping = false
      this.#pump()
    })
  }

  /** Appends what there is to append, if nothing is under way. */
  #pump(): void {
    if (this.#appender.isBusy || this.#isPassing) return
    if (this.#state === 'closed' || this.#follower.isLoading) return
    const batch = this.#state === 'joining' ? this.#joiningBatch() : this.#nextBatch()
    if (batch === undefined) {
      this.#arm()
      return
    }
    this.#beatAt = this.#clock.now() + this.#options.memberTtl / 3
    this.#own.add(batch)
    void this.#append(batch)
  }

  async #append(batch: Batch): Promise<void> {
    const { machine } = this
    const { position, refusal } = await this.#appender.append(batch)
    if (this.#state === 'closed') return
    if (refusal) {
      this.#own.take(batch.sequence)
      if (this.#state === 'joining') {
        this.#joined?.reject(refusal)
        this.#clock.timer(this.#clock.now() + JOIN_AGAIN_MS, () => this.#pump())
        return
      }
    } else if (position !== undefined && position <= this.machine.position && !batch.isOver) {
      // Something else was at this position when this replica was there.
      if (this.machine === machine) void this.#ahead()
      return
    }
    this.#pump()
  }

  #joiningBatch(): Batch | undefined {
    if (!this.#own.isEmpty) return undefined
    const { machine } = this
    const { limits, semantics = SEMANTICS } = this.#options
    const above = this.#lost.above(machine)
    const commands: Command[] = [{ do: 'join', semantics }]
    if (!machine.isFounded) commands.unshift({ do: 'found', limits, above: above ?? 0, semantics })
    else if (above !== undefined) commands.unshift({ do: 'recover', above })
    return {
      ...this.#author.write(machine, encodeCommands(commands)),
      calls: [],
      renewals: [],
      isOver: false,
    }
  }

  #nextBatch(): Batch | undefined {
    const now = this.#clock.now()
    const { machine } = this
    const since = now - this.#options.memberTtl
    const say = machine.members.proposals(this.#member, since, machine.semantics)
    const { commands, calls, renewals } = this.#calls.take(machine, say, now)
    // Proposals about members alone wait for a heartbeat: a replica that is behind would repeat them.
    const isNews = commands.count > say.length || calls.length > 0
    if (!isNews && now < this.#beatAt) return undefined
    return { ...this.#author.write(machine, commands), calls, renewals, isOver: false }
  }

  /** Sets the timer for the next lease or heartbeat that is due. */
  #arm(): void {
    if (this.#state !== 'member') return
    const stagger = Math.min(this.machine.members.rank(this.#member), STAGGER_MAX) * STAGGER_MS
    const end = this.machine.timers.next + stagger
    this.#alarm.set(Math.min(end, this.#beatAt, this.#calls.renewAt))
  }
}
