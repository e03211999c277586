import type { FollowEnd, Following, Log, LogEntry, Position } from '../../log/index.ts'
import {
  backoff,
  type Clock,
  isLeaseholdError,
  LeaseholdError,
  type Random,
  withTimeout,
} from '../../port/index.ts'
import { Outbox } from '../../runner/index.ts'
import { decodeEntry, type Entry } from '../entry.ts'
import {
  damagedEntry,
  damagedSnapshot,
  foreignLog,
  incompleteLog,
  isFinal,
  noAnswer,
  unreachable,
} from '../faults.ts'
import { type Applied, Machine } from '../state/index.ts'
import { LogClock } from './log-clock.ts'

/** The first and the longest wait before following again after an interruption. */
const RETRY_MS = 50
const RETRY_MAX_MS = 1000
/** How many times in a row a loaded snapshot may be too old. */
const RELOADS_MAX = 5

export interface LogFollowerOptions {
  readonly log: Log
  readonly clock: Clock
  readonly random: Random
  /** How long `open` waits for an engine that does not answer, in milliseconds. */
  readonly timeout: number
  /** The latest version of the lease rules that this process knows. */
  readonly semantics: number
  /** Watches are not notified before this is fulfilled. */
  readonly decided: () => Promise<void> | undefined
  /** An entry was read, with this outcome. */
  readonly applied: (entry: Entry, applied: Applied, bytes: number) => void
  /** All entries of one delivery were applied. */
  readonly batchApplied: () => void
  /** The state was loaded again from a snapshot and replaces the previous machine. */
  readonly reloaded: (before: Machine) => void
  /** The log ends before the last applied entry. */
  readonly lost: () => void
  /** No more entries can be applied. */
  readonly stopped: (error: LeaseholdError) => void
}

/** Keeps a machine up to date with its log: loads the snapshot, follows the log, restarts if needed. */
export class LogFollower {
  machine!: Machine
  outbox!: Outbox
  readonly clock = new LogClock()
  /** Why following was interrupted; `undefined` if it works. */
  lastError: unknown
  readonly #options: LogFollowerOptions
  #following: Following | undefined
  /** How many waits there were since the last entry. */
  #failures = 0
  /** How many times in a row the entries after the loaded snapshot were already trimmed. */
  #reloads = 0
  #isLoading = false
  #isClosed = false
  /** The position of the snapshot that was loaded; 0 if there was none. */
  loaded: Position = 0

  constructor(options: LogFollowerOptions) {
    this.#options = options
  }

  get isLoading(): boolean {
    return this.#isLoading
  }

  /** Loads the newest snapshot, if there is one, and starts to follow. */
  async open(): Promise<void> {
    const { clock, timeout } = this.#options
    const deadline = clock.now() + timeout
    await this.#loadUntil(deadline, (error, wait) => {
      if (isFinal(error)) throw error
      if (clock.now() + wait >= deadline) throw unreachable(timeout, error)
    })
    this.follow()
  }

  follow(): void {
    this.#following?.close()
    this.#following = this.#options.log.follow(this.machine.position, {
      entries: (entries) => this.#applyAll(entries),
      ended: (end) => this.#ended(end),
    })
  }

  /** Drops the state and starts again from the snapshot. */
  async reload(): Promise<void> {
    if (this.#isLoading || this.#isClosed) return
    this.#isLoading = true
    this.#following?.close()
    const { machine, outbox } = this
    try {
      await this.#loadUntil(Infinity, (error) => {
        this.lastError = error
        if (isLeaseholdError(error) && FATAL.includes(error.code)) throw error
      })
    } catch (error) {
      this.#options.stopped(error as LeaseholdError)
      return
    }
    if (this.#isClosed) return
    this.#isLoading = false
    const message = 'the replica loaded a snapshot: read again, and watch from that revision'
    if (machine.isInitialized) outbox.close(new LeaseholdError('unknown-outcome', message))
    this.#options.reloaded(machine)
    this.follow()
  }

  close(error: LeaseholdError): void {
    this.#isClosed = true
    this.#following?.close()
    if (this.machine?.isInitialized) this.outbox.close(error)
  }

  /** Loads until it succeeds, with waits in between. `failed` may throw to give up. */
  async #loadUntil(
    deadline: number,
    failed: (error: unknown, wait: number) => void,
  ): Promise<void> {
    while (!this.#isClosed) {
      try {
        await this.#load(deadline)
        return
      } catch (error) {
        const wait = this.#nextWait()
        failed(error, wait)
        await this.#pause(wait)
      }
    }
  }

  async #load(deadline: number): Promise<void> {
    const { log, clock, decided, semantics } = this.#options
    const snapshot = await withTimeout(clock, deadline, log.loadSnapshot(), noAnswer)
    const outbox = new Outbox(decided)
    const machine = new Machine(outbox, semantics)
    if (snapshot) {
      const now = clock.now()
      try {
        machine.restore(snapshot.chunks, snapshot.position, now)
      } catch (error) {
        throw isLeaseholdError(error) ? error : damagedSnapshot(snapshot.position, error)
      }
      this.clock.observe(machine.time, now)
      outbox.attach(machine.kernel)
    }
    this.loaded = snapshot?.position ?? 0
    this.machine = machine
    this.outbox = outbox
  }

  #ended(end: FollowEnd): void {
    if (this.#isClosed) return
    if (end.cause === 'interrupted') {
      this.lastError = end.error
      void this.#pause().then(() => {
        if (!this.#isClosed && !this.#isLoading) this.follow()
      })
    } else if (end.cause === 'trimmed') this.#trimmed()
    else this.#options.lost()
  }

  #trimmed(): void {
    // While a snapshot loads, another may replace it and the log be trimmed up to the new one.
    if (++this.#reloads > RELOADS_MAX) this.#options.stopped(incompleteLog(this.machine.position))
    else if (this.#reloads === 1) void this.reload()
    else void this.#pause().then(() => this.reload())
  }

  #nextWait(): number {
    return backoff(this.#failures++, this.#options.random, RETRY_MS, RETRY_MAX_MS)
  }

  #pause(wait = this.#nextWait()): Promise<void> {
    const { clock } = this.#options
    return new Promise((resolve) => {
      clock.timer(clock.now() + wait, resolve, true)
    })
  }

  #applyAll(entries: readonly LogEntry[]): void {
    const { clock, applied, batchApplied, stopped } = this.#options
    const { machine } = this
    const now = clock.now()
    this.lastError = undefined
    this.#failures = 0
    this.#reloads = 0
    for (const { position, bytes } of entries) {
      let entry: Entry | undefined
      let outcome: Applied
      try {
        entry = decodeEntry(bytes)
        const wasInitialized = machine.isInitialized
        if (!entry && !wasInitialized) throw foreignLog(position, bytes)
        outcome = machine.apply(entry, position, now)
        if (!wasInitialized && machine.isInitialized) this.outbox.attach(machine.kernel)
      } catch (error) {
        stopped(isLeaseholdError(error) ? error : damagedEntry(position, error))
        return
      }
      if (!entry) continue
      if (outcome.outcome === 'applied') this.clock.observe(entry.time, now)
      applied(entry, outcome, bytes.length)
      // The callback may have started a reload, or closed this follower.
      if (this.#isLoading || this.#isClosed) return
    }
    batchApplied()
  }
}

/** Errors for which a reload is not repeated. */
const FATAL: readonly string[] = ['storage-damaged', 'unsupported', 'invalid-argument', 'closed']
