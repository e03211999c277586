import { type Clock, LeaseholdError, type LeaseId, type Revision } from '../port/index.ts'
import type { Outbox } from '../runner/index.ts'
import { Agreement } from './agreement.ts'
import { Author, type Batch, CallDeadlines, CallQueue, OwnEntries } from './calls/index.ts'
import { type Command, type Entry, encodeCommands, HEADER_BYTES } from './entry.ts'
import { outcomeUnknown, readFailed } from './faults.ts'
import type { ReplicaOptions } from './options.ts'
import { ResettableTimer } from './resettable-timer.ts'
import { Appender, CatchUp, LogFollower, LostTail, Snapshots } from './shared-log/index.ts'
import { type Applied, type Machine, SEMANTICS } from './state/index.ts'

/** Members propose the end of a lease at different times, so that usually only the first one does. */
const STAGGER_MS = 10
const STAGGER_MAX = 5
/** The wait before a process that the log refused tries to join again. */
const JOIN_AGAIN_MS = 1000

type State = 'joining' | 'member' | 'closed'

/**
 * Runs the machine on a log: applies the entries of the log, appends the commands of callers, and
 * answers the callers when their own entries have been applied.
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
  readonly #timer: ResettableTimer
  readonly #author: Author
  #state: State = 'joining'
  #pumping = false
  /** The replica is appending empty entries until the log reaches its snapshot. Nothing else is sent. */
  #isExtendingLog = false
  /** When it must write an entry, so that the others do not remove it. */
  #heartbeatAt = -Infinity
  #fault: LeaseholdError | undefined
  #joined: { resolve(): void; reject(error: unknown): void } | undefined

  constructor(options: ReplicaOptions) {
    const { log, clock, random, timeout } = options
    this.#options = options
    this.#clock = clock
    this.#follower = new LogFollower({
      ...{ log, clock, random, timeout, semantics: options.semantics ?? SEMANTICS },
      decided: () => this.#agreement.decided,
      applied: (entry, applied, bytes) => this.#applied(entry, applied, bytes),
      batchApplied: () => this.#batchApplied(),
      reloaded: (before) => this.#reloaded(before),
      lost: () => void this.#logEndsEarly(),
      stopped: (error) => this.#stop(error),
    })
    this.#appender = new Appender(log, clock, random)
    this.#deadlines = new CallDeadlines(clock, timeout, () => this.#appender.lastError)
    this.#snapshots = new Snapshots(log, clock, options.snapshotBytes)
    this.#catchUp = new CatchUp({
      ...{ log, clock, timeout },
      lastError: () => this.#follower.lastError,
      onLogBehind: () => {
        if (!this.#follower.isLoading) this.#follower.follow()
      },
    })
    this.#agreement = new Agreement({
      clock,
      members: () => this.machine.members,
      disagreed: () => {
        this.#catchUp.pause()
        this.#heartbeatAt = -Infinity
        this.#pumpSoon()
      },
      settled: () => this.#catchUp.resume(),
      outvoted: (error) => this.#stop(error),
    })
    this.#lost = new LostTail(clock, options.tokensAbove)
    // After a stall, apply what has arrived first: it may contain a renewal.
    this.#timer = new ResettableTimer(clock, () => this.#pumpSoon())
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

  /** Catches up with the log and joins as a member. */
  async open(): Promise<void> {
    const joined = new Promise<void>((resolve, reject) => {
      this.#joined = { resolve, reject }
    })
    // The caller gets the first failure.
    joined.catch(() => {})
    // Neither the client of the engine nor the timers here keep the process running.
    const keepAlive = this.#clock.timer(Number.MAX_SAFE_INTEGER, () => {}, true)
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
    } finally {
      keepAlive.cancel()
    }
  }

  /** Sends a command. Fulfilled with the kernel's answer, or rejected with its refusal. */
  propose(command: Command): Promise<unknown> {
    return this.#fault ? Promise.reject(this.#fault) : this.#call(command)
  }

  /** Renews leases, in one entry with all other renewals of about the same time. */
  renew(ids: readonly LeaseId[]): Promise<unknown> {
    if (this.#fault) return Promise.reject(this.#fault)
    const call = this.#deadlines.begin(ids)
    this.#calls.addRenewal(call)
    if (this.#clock.now() >= this.#calls.renewAt) this.#pumpSoon()
    else this.#setTimer()
    return call.promise
  }

  /** The most leases that one call can renew, whatever their ids. */
  get renewMax(): number {
    return this.#calls.renewMax
  }

  /** Fulfilled when every entry that was acknowledged before this call has been applied. */
  async caughtUp(): Promise<void> {
    if (this.#fault) throw this.#fault
    if (!this.#options.log.promises.tailMayBeOld) return this.#catchUp.caughtUp()
    // A call without a command: when its entry has been applied, everything before it has.
    await this.#call().catch((error: unknown) => {
      throw readFailed(error)
    })
  }

  async close(error: LeaseholdError): Promise<void> {
    if (this.#state === 'closed') return
    const isMember = this.#state === 'member' && !this.#agreement.isOpen
    this.#state = 'closed'
    this.#fault ??= error
    this.#joined?.reject(error)
    this.#deadlines.fail((call) => (call.isSent ? outcomeUnknown(error) : error))
    this.#catchUp.fail(error)
    this.#timer.cancel()
    this.#appender.close()
    this.#follower.close(error)
    if (isMember) {
      // If this fails, the others remove the member after its ttl.
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
    this.#snapshots.countBytes(bytes)
    this.#lost.forgetIfHandled(this.machine)
    // The snapshot of the previous epoch may contain lost entries.
    if (entry.commands[0]?.do === 'recover') this.#snapshots.requestSoon()
    const isOwn = entry.member === this.#member
    if (applied.outcome === 'diverged') {
      // Before it is a member, everything that this replica has is from this log.
      if (this.#state === 'member') this.#lostTail(entry.revision)
      else this.#lost.record(this.machine, entry.revision)
    } else if (!isOwn) this.#agreement.compare(entry, applied)
    if (isOwn) this.#ownApplied(entry.sequence, applied)
    else if (applied.outcome === 'applied') this.#own.applied(entry)
  }

  #batchApplied(): void {
    const { machine } = this
    if (machine.isInitialized) this.outbox.changed()
    this.#rejoinIfRemoved()
    this.#agreement.decide(false)
    this.#catchUp.applied(machine.position)
    if (this.#state === 'member' && !this.#agreement.isOpen) {
      this.#snapshots.saveIfDue(machine, machine.members.rank(this.#member))
    }
    this.#setTimer()
  }

  /** The log or this replica is damaged: it stops answering. */
  #stop(error: LeaseholdError): void {
    this.#joined?.reject(error)
    void this.close(error)
  }

  /** The log lost entries that this replica, or the author of an entry, has applied: reload. */
  #lostTail(revision: Revision): void {
    if (this.#state === 'closed' || this.#follower.isLoading) return
    this.#lost.record(this.machine, revision)
    this.#catchUp.pause()
    void this.#follower.reload()
  }

  /** The log ends before the last applied entry. */
  async #logEndsEarly(): Promise<void> {
    if (this.#state === 'member' || this.machine.position > this.#follower.loaded) {
      this.#lostTail(0)
      return
    }
    // It even ends before the snapshot. Positions must pass it, or no replica would read new entries.
    this.#lost.record(this.machine, 0)
    if (this.#isExtendingLog) return
    this.#isExtendingLog = true
    await this.#lost.extendLog(
      this.#options.log,
      this.machine.position,
      this.#author.write(this.machine, encodeCommands([])).bytes,
    )
    this.#isExtendingLog = false
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
    else this.#rejoinIfRemoved()
    this.#catchUp.applied(machine.position)
    if (this.#state === 'member') this.#catchUp.resume()
    this.#setTimer()
  }

  #ownApplied(sequence: number, applied: Applied): void {
    if (applied.outcome === 'repeated') return
    if (applied.outcome !== 'applied') {
      // Another process created the log, a removal came in between, or the entry was too late: repeat.
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
    this.#agreement.whenDecided(() => {
      for (const call of calls) call.answer(answers[call.at])
      for (const [at, call] of renewals.entries()) call.answer(renewed[at])
    })
  }

  /** The entry will never be applied: its calls go into another entry. */
  #sendAgain(sequence: number): void {
    const batch = this.#own.take(sequence)
    if (batch) this.#calls.putBack([batch])
    this.#pumpSoon()
  }

  /** Joins again under another name, if the others have removed this member. */
  #rejoinIfRemoved(): void {
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

  /** Appends the next entry, if there is one and no append is in flight. */
  #pump(): void {
    if (this.#appender.isBusy || this.#isExtendingLog) return
    if (this.#state === 'closed' || this.#follower.isLoading) return
    const batch = this.#state === 'joining' ? this.#joiningBatch() : this.#nextBatch()
    if (batch === undefined) {
      this.#setTimer()
      return
    }
    this.#heartbeatAt = this.#clock.now() + this.#options.memberTtl / 3
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
      // This replica has already applied another entry at this position.
      if (this.machine === machine) void this.#logEndsEarly()
      return
    }
    this.#pump()
  }

  #joiningBatch(): Batch | undefined {
    if (!this.#own.isEmpty) return undefined
    const { machine } = this
    const { limits, semantics = SEMANTICS } = this.#options
    const above = this.#lost.tokensAbove(machine)
    const commands: Command[] = [{ do: 'join', semantics }]
    if (!machine.isInitialized)
      commands.unshift({ do: 'initialize', limits, above: above ?? 0, semantics })
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
    const proposals = machine.members.proposals(this.#member, since, machine.semantics)
    const { commands, calls, renewals } = this.#calls.take(machine, proposals, now)
    // Proposals about members wait for other work or a heartbeat: otherwise a late replica repeats them.
    const hasWork = commands.count > proposals.length || calls.length > 0
    if (!hasWork && now < this.#heartbeatAt) return undefined
    return { ...this.#author.write(machine, commands), calls, renewals, isOver: false }
  }

  /** Sets the timer to the next lease, heartbeat or renewal that is due. */
  #setTimer(): void {
    if (this.#state !== 'member') return
    const stagger = Math.min(this.machine.members.rank(this.#member), STAGGER_MAX) * STAGGER_MS
    const end = this.machine.timers.next + stagger
    this.#timer.set(Math.min(end, this.#heartbeatAt, this.#calls.renewAt))
  }
}
