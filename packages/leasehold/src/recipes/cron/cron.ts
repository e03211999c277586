import type { Client, Hold, RecipeEvent } from '../../client/index.ts'
import {
  backoff,
  type Duration,
  formatDuration,
  isLeaseholdError,
  knownNames,
  milliseconds,
  show,
} from '../../port/index.ts'
import { checkWaitOptions, functionOf, keyPart } from '../arguments.ts'
import type { Lock } from '../lock/lock.ts'
import { readRecord, writeRecord } from '../once/record.ts'
import { onAbort, sleep } from '../sleep.ts'
import { type KeptValue, readKept, writeKept } from '../values/kept-value.ts'
import { type CronSchedule, type NextTime, nextTimeOf } from './schedule.ts'

const CATCH_UP: Duration = '1h'
/** How much longer than `catchUp` the record of a run is kept. */
const CLOCKS_DIFFER_MS = 10 * 60_000
/** The position in the schedule expires if no process runs the job for this long. */
const POSITION_KEPT_MS = 400 * 86_400_000
/** The wall clock is read again this often, because it may be set. */
const LOOK_MS = 30_000
/** Error codes after which a retry is useless. */
const FINAL = new Set<string>(['forbidden', 'unauthenticated', 'invalid-argument', 'closed'])

export interface CronOptions {
  /**
   * How late a run may start, for example after a failover or a restart of the whole fleet. Later
   * runs are left out. Default: 1 hour.
   */
  readonly catchUp?: Duration | undefined
  /** How long after the death of the running process another takes over. Default: 10 s. */
  readonly ttl?: Duration | undefined
  readonly grace?: Duration | undefined
  /** Ends the job, like `close`. */
  readonly signal?: AbortSignal | undefined
}

const CRON_OPTIONS = knownNames<CronOptions>({
  catchUp: true,
  ttl: true,
  grace: true,
  signal: true,
})

/** One run of a job. */
export interface CronRun {
  /** When it was due. It is the same in every process, so it identifies the run. */
  readonly time: Date
  /** Held during the run. Stop if its signal is aborted, and send its token with every write. */
  readonly lock: Lock
}

/**
 * A job that runs on a schedule, in one process of a fleet at a time. Every process that opens it
 * is ready to take over.
 *
 * Each time of the schedule is run by one process. If that process dies during the run, or loses
 * its lock, the next one runs it again: so a run that is interrupted is never left out, but may
 * have run in part. A run that fails with an error is done, and reported as `failed`.
 *
 * Runs of one job never overlap. If a run takes longer than the schedule allows, the next ones run
 * after it, without a pause, as far as `catchUp` reaches.
 */
export class CronJob implements AsyncDisposable {
  readonly name: string
  readonly #client: Client
  readonly #next: NextTime
  readonly #work: (run: CronRun) => unknown
  readonly #timing: Pick<CronOptions, 'ttl' | 'grace'>
  readonly #catchUp: number
  readonly #closing = new AbortController()
  /**
   * Resolves when the job has ended in this process: it or the client was closed. Rejects if the
   * store refuses the job for good, for example because a right is missing.
   */
  readonly ended: Promise<void>
  #hold: Hold | undefined = undefined
  #due: number | undefined = undefined
  /** In a row: a run that cannot be recorded must not be repeated as fast as the store allows. */
  #failures = 0

  private constructor(
    client: Client,
    name: string,
    next: NextTime,
    work: (run: CronRun) => unknown,
    { catchUp = CATCH_UP, ttl, grace, signal }: CronOptions,
  ) {
    this.name = name
    this.#client = client
    this.#next = next
    this.#work = work
    this.#timing = { ttl, grace }
    this.#catchUp = milliseconds(catchUp, 'catchUp')
    const stopListening = onAbort([signal], () => this.#closing.abort())
    this.ended = this.#compete().finally(stopListening)
    // A caller that does not await it need not catch its rejection.
    this.ended.catch(() => {})
  }

  static async start(
    client: Client,
    name: string,
    schedule: CronSchedule,
    work: (run: CronRun) => unknown,
    options: CronOptions,
  ): Promise<CronJob> {
    keyPart("the job's name", name)
    functionOf(`the work of ${show(name)}`, work)
    checkWaitOptions('cron', options, CRON_OPTIONS)
    return new CronJob(client, name, await nextTimeOf(schedule), work, options)
  }

  /** Whether this process is the one that runs the job. */
  get active(): boolean {
    return this.#hold?.held === true
  }

  /** When the job runs next, if this process runs it. */
  get next(): Date | undefined {
    return this.active && this.#due !== undefined ? new Date(this.#due) : undefined
  }

  /** Ends the job in this process, after the current run. Another process takes over. */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.ended.catch(() => {})
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** Waits until this process may run the job, runs it, and waits again after a loss. */
  async #compete(): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted && !this.#client.closing.aborted) {
      try {
        const claim = { key: this.#key('run') }
        this.#hold = await this.#client.hold([claim], {
          strategy: 'election',
          ...this.#timing,
          signal,
        })
        await this.#runWhileHeld(this.#hold)
      } catch (error) {
        if (signal.aborted || this.#client.closing.aborted) break
        if (isLeaseholdError(error) && FINAL.has(error.code)) throw error
        this.#report('retrying', String((error as Error).message), 'warn')
        const ms = backoff(this.#failures++, this.#client.random)
        await sleep(this.#client, ms, signal).catch(() => {})
      } finally {
        await this.#hold?.[Symbol.asyncDispose]()
        this.#hold = undefined
      }
    }
  }

  /** Runs what is due until the job is closed. Throws if the hold is lost. */
  async #runWhileHeld(hold: Hold): Promise<void> {
    let after = await this.#position()
    while (!this.#closing.signal.aborted) {
      const now = this.#timeOfDay()
      after = this.#leaveOut(after, now)
      this.#due = this.#next(after)
      if (this.#due === undefined || this.#due > now) {
        await this.#sleep(hold, Math.min(LOOK_MS, (this.#due ?? Infinity) - now))
        this.#failures = 0
        continue
      }
      await this.#run(this.#due, hold)
      after = this.#due
      hold.assertHeld()
      await this.#write(String(after), await readKept(this.#client, this.#key('position')))
      this.#failures = 0
    }
  }

  /** Everything up to here was run or left out. A new job starts now. */
  async #position(): Promise<number> {
    const stored = await readKept(this.#client, this.#key('position'))
    const position = Number(stored?.value)
    if (stored !== undefined && Number.isFinite(position)) return position
    const now = this.#timeOfDay()
    // Stored now, so that the first run is not left out if this process dies before it.
    await this.#write(String(now), stored)
    return now
  }

  #leaveOut(after: number, now: number): number {
    const earliest = now - this.#catchUp
    const first = this.#next(after)
    if (first === undefined || first >= earliest) return after
    const detail = `runs from ${isoTime(first)} on are left out: they are more than ${formatDuration(this.#catchUp)} late (catchUp)`
    this.#report('left-out', detail, 'warn')
    // A run that is due at this very millisecond is not too late.
    return earliest - 1
  }

  async #run(time: number, hold: Hold): Promise<void> {
    const record = this.#key(`done/${isoTime(time)}`)
    // Written by a process that lost its hold before it could store its position.
    if ((await readRecord(this.#client, record)) !== undefined) return
    const started = this.#client.now()
    let failure: string | undefined
    try {
      await this.#work({ time: new Date(time), lock: hold })
    } catch (error) {
      failure = error instanceof Error ? error.message : String(error)
    }
    // A run that lost its lock is not done: whoever holds it now runs it again.
    hold.assertHeld()
    const keep = Math.min(this.#catchUp + CLOCKS_DIFFER_MS, this.#client.guarantees.ttl.max)
    await writeRecord(this.#client, record, undefined, keep)
    const took = formatDuration(Math.round(this.#client.now() - started))
    if (failure === undefined) this.#report('ran', `${isoTime(time)}, in ${took}`)
    else this.#report('failed', `${isoTime(time)}, after ${took}: ${failure}`, 'error')
  }

  async #write(position: string, before: KeptValue | undefined): Promise<void> {
    const ttl = Math.min(POSITION_KEPT_MS, this.#client.guarantees.ttl.max)
    await writeKept(this.#client, this.#key('position'), position, ttl, before)
  }

  /** Fails if the hold is lost. */
  async #sleep(hold: Hold, ms: number): Promise<void> {
    const { signal } = this.#closing
    let stop = () => {}
    await sleep(this.#client, Math.max(0, ms), signal, (done) => {
      stop = onAbort([hold.signal], done)
    }).catch(() => {})
    stop()
    if (!signal.aborted) hold.assertHeld()
  }

  #timeOfDay(): number {
    const { clock } = this.#client
    return Math.floor(clock.timeOfDay?.() ?? clock.now())
  }

  #key(part: string): string {
    return `cron/${this.name}/${part}`
  }

  #report(event: CronEvent, detail: string, level?: RecipeEvent['level']): void {
    const key = this.#key('run')
    const token = this.#hold?.claimToken
    this.#client.emit({ recipe: 'cron', event, key, token, detail, level })
  }
}

type CronEvent = Extract<RecipeEvent, { recipe: 'cron' }>['event']

function isoTime(time: number): string {
  return new Date(time).toISOString()
}
