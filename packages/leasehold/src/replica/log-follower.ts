import type { FollowEnd, Following, Log, LogEntry, Position } from '../log/index.ts'
import { type Clock, isLeaseholdError, LeaseholdError } from '../port/index.ts'
import { Outbox } from '../runner/index.ts'
import { decodeEntry, type Entry } from './entry.ts'
import {
  damagedEntry,
  damagedSnapshot,
  foreignLog,
  incompleteLog,
  isFinal,
  unreachable,
} from './faults.ts'
import { LogClock } from './log-clock.ts'
import { type Applied, Machine } from './machine.ts'
import { within } from './within.ts'

/** After following was interrupted it begins again after so long, and each time after twice as long. */
const AGAIN_MS = 50
const AGAIN_MAX_MS = 1000
/** So often a snapshot may turn out to be too old. */
const VAIN_MAX = 5

export interface LogFollowerOptions {
  readonly log: Log
  readonly clock: Clock
  /** How long opening waits for an engine that does not answer, in milliseconds. */
  readonly timeout: number
  /** The latest version of the lease rules that this process knows. */
  readonly semantics: number
  /** What is told to watches waits for this. */
  readonly certain: () => Promise<void> | undefined
  /** What became of an entry. */
  readonly applied: (entry: Entry, applied: Applied, bytes: number) => void
  /** All entries that came together were applied. */
  readonly settled: () => void
  /** The state was read anew from a snapshot, in place of what it was before. */
  readonly reloaded: (before: Machine) => void
  /** The log ends before what was applied. */
  readonly lost: () => void
  /** Nothing can be applied any more. */
  readonly stopped: (error: LeaseholdError) => void
}

/** Keeps a machine up to date with its log: loads the snapshot, follows, and begins again if need be. */
export class LogFollower {
  machine!: Machine
  outbox!: Outbox
  readonly clock = new LogClock()
  /** Why following was interrupted; `undefined` if it was not. */
  trouble: unknown
  readonly #options: LogFollowerOptions
  #following: Following | undefined
  #wait = AGAIN_MS
  /** How often it began again in vain: what it needs next was trimmed. */
  #vain = 0
  #isLoading = false
  #isClosed = false
  /** The position of the snapshot that the machine began with. */
  loaded: Position = 0

  constructor(options: LogFollowerOptions) {
    this.#options = options
  }

  get isLoading(): boolean {
    return this.#isLoading
  }

  /** Begins with the newest snapshot, or with nothing if there is none. */
  async open(): Promise<void> {
    const { clock, timeout } = this.#options
    const deadline = clock.now() + timeout
    await this.#loadUntil(deadline, (error) => {
      if (isFinal(error)) throw error
      if (clock.now() + this.#wait >= deadline) throw unreachable(timeout, error)
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

  /** Begins again with the snapshot. What was applied is forgotten. */
  async reload(): Promise<void> {
    if (this.#isLoading || this.#isClosed) return
    this.#isLoading = true
    this.#following?.close()
    const { machine, outbox } = this
    try {
      await this.#loadUntil(Infinity, (error) => {
        this.trouble = error
        if (isLeaseholdError(error) && REFUSED.includes(error.code)) throw error
      })
    } catch (error) {
      this.#options.stopped(error as LeaseholdError)
      return
    }
    if (this.#isClosed) return
    this.#isLoading = false
    const message = 'the replica had to load a snapshot: read again, and watch from there'
    if (machine.isFounded) outbox.close(new LeaseholdError('unknown-outcome', message))
    this.#options.reloaded(machine)
    this.follow()
  }

  close(error: LeaseholdError): void {
    this.#isClosed = true
    this.#following?.close()
    if (this.machine?.isFounded) this.outbox.close(error)
  }

  /** Loads, again and again until it succeeds. `failed` may throw to give up. */
  async #loadUntil(deadline: number, failed: (error: unknown) => void): Promise<void> {
    while (!this.#isClosed) {
      try {
        await this.#load(deadline)
        return
      } catch (error) {
        failed(error)
      }
      await this.#pause()
    }
  }

  async #load(deadline: number): Promise<void> {
    const { log, clock, certain, semantics } = this.#options
    const snapshot = await within(clock, deadline, log.loadSnapshot())
    const outbox = new Outbox(certain)
    const machine = new Machine(outbox, semantics)
    if (snapshot) {
      const now = clock.now()
      try {
        machine.restore(snapshot.chunks, snapshot.position, now)
      } catch (error) {
        throw isLeaseholdError(error) ? error : damagedSnapshot(snapshot.position, error)
      }
      this.clock.seen(machine.time, now)
      outbox.attach(machine.kernel)
    }
    this.loaded = snapshot?.position ?? 0
    this.machine = machine
    this.outbox = outbox
  }

  #ended(end: FollowEnd): void {
    if (this.#isClosed) return
    if (end.cause === 'interrupted') {
      this.trouble = end.error
      void this.#pause().then(() => {
        if (!this.#isClosed && !this.#isLoading) this.follow()
      })
    } else if (end.cause === 'trimmed') this.#trimmed()
    else this.#options.lost()
  }

  #trimmed(): void {
    // A snapshot may be replaced, and what is before the new one trimmed, while it is loaded.
    if (++this.#vain > VAIN_MAX) this.#options.stopped(incompleteLog(this.machine.position))
    else if (this.#vain === 1) void this.reload()
    else void this.#pause().then(() => this.reload())
  }

  #pause(): Promise<void> {
    const { clock } = this.#options
    const wait = this.#wait
    this.#wait = Math.min(2 * wait, AGAIN_MAX_MS)
    return new Promise((resolve) => {
      clock.timer(clock.now() + wait, resolve, true)
    })
  }

  #applyAll(entries: readonly LogEntry[]): void {
    const { clock, applied, settled, stopped } = this.#options
    const { machine } = this
    const now = clock.now()
    this.trouble = undefined
    this.#wait = AGAIN_MS
    this.#vain = 0
    for (const { position, bytes } of entries) {
      let entry: Entry | undefined
      let outcome: Applied
      try {
        entry = decodeEntry(bytes)
        const wasFounded = machine.isFounded
        if (!entry && !wasFounded) throw foreignLog(position, bytes)
        outcome = machine.apply(entry, position, now)
        if (!wasFounded && machine.isFounded) this.outbox.attach(machine.kernel)
      } catch (error) {
        stopped(isLeaseholdError(error) ? error : damagedEntry(position, error))
        return
      }
      if (!entry) continue
      if (outcome.outcome === 'applied') this.clock.seen(entry.time, now)
      applied(entry, outcome, bytes.length)
      // What became of the entry may have ended this: the log is read anew, or nobody reads it.
      if (this.#isLoading || this.#isClosed) return
    }
    settled()
  }
}

/** What a reload cannot be repeated for. */
const REFUSED: readonly string[] = ['storage-damaged', 'unsupported', 'invalid-argument', 'closed']
