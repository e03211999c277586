import { type Clock, LeaseholdError, type Limits, type RequestId } from '../../../port/index.ts'
import type { Database } from '../database.ts'
import { CLOSED } from '../faults.ts'
import { CallDeadlines, type Due, unanswered, unsent } from './call-deadlines.ts'

/** The maximum for one statement: other calls wait for as long as it takes. */
const BATCH_CALLS = 256
const BATCH_CHARACTERS = 512 * 1024
/** The maximum number of waiting calls. */
const CALLS_MAX = 100_000
/** Statements in flight at a time: the next one is sent while the disk writes the last. */
const BATCHES_MAX = 2

/** How the calls are connected to the rest of the store. */
export interface CallDependencies {
  /** What must happen before a statement may be sent, if anything. */
  before(): Promise<void> | undefined
  /** How many milliseconds until the next deadline, and which process handles it. */
  deadline(remaining: number, sweeper: string | null): void
  /** There is something to forget. */
  surplus(): void
}

interface Call extends Due {
  readonly text: string
  readonly resolve: (answer: never) => void
}

type Answers = readonly [
  remaining: number | string,
  sweeper: string | null,
  surplus: boolean,
  answers: readonly unknown[],
]

/**
 * The calls that change something. All calls of one turn of the event loop, or that arrived while
 * statements were in flight, are sent in one statement: one round trip, one passage through the
 * turnstile and one flush of the disk for all of them. So the store gets faster under load, and it
 * costs little that changes happen one after the other.
 */
export class Calls {
  readonly #database: Database
  readonly #clock: Clock
  readonly #dependencies: CallDependencies
  readonly #call = 'calls($1::text::integer, $2::text::integer[], $3::text::jsonb)'
  readonly #timeout: number
  readonly #limits: string
  /** A repeated request whose answer has not arrived yet shares that answer. */
  readonly #requests = new Map<RequestId, Promise<unknown>>()
  readonly #waiting: Call[] = []
  readonly #deadlines: CallDeadlines
  #underWay = 0
  #leaving = false
  #closed = false
  #emptied: (() => void) | undefined

  constructor(
    database: Database,
    clock: Clock,
    timeout: number,
    limits: Limits,
    dependencies: CallDependencies,
  ) {
    this.#database = database
    this.#clock = clock
    this.#timeout = timeout
    this.#dependencies = dependencies
    this.#deadlines = new CallDeadlines(clock, () => unsent(timeout))
    const { claimsPerKey, claimsPerLease, childrenPerLease, leaseDepth, leases, page } = limits
    const all = [claimsPerKey, claimsPerLease, childrenPerLease, leaseDepth, leases, page]
    this.#limits = `{${all.join(',')}}`
  }

  /** A call is its name, its request id or null, and its arguments: see the statements. */
  call<Answer>(call: readonly [string, RequestId | null, ...unknown[]]): Promise<Answer> {
    if (this.#closed) return Promise.reject(LeaseholdError.from(CLOSED))
    const request = call[1]
    if (request === null) return this.#add(call)
    const known = this.#requests.get(request)
    if (known !== undefined) return known as Promise<Answer>
    const answer = this.#add<Answer>(call)
    this.#requests.set(request, answer)
    const forget = () => this.#requests.delete(request)
    answer.then(forget, forget)
    return answer
  }

  /** Refuses the calls that were not sent. Fulfilled when those that were sent are answered or late. */
  close(): Promise<void> {
    this.#closed = true
    this.#deadlines.stop()
    for (const { reject } of this.#waiting.splice(0)) reject(LeaseholdError.from(CLOSED))
    if (this.#underWay === 0) return Promise.resolve()
    return new Promise((resolve) => {
      this.#emptied = resolve
    })
  }

  #add<Answer>(call: readonly unknown[]): Promise<Answer> {
    if (this.#waiting.length >= CALLS_MAX) return Promise.reject(tooMany())
    return new Promise<Answer>((resolve, reject) => {
      const deadline = this.#clock.now() + this.#timeout
      this.#waiting.push({ text: JSON.stringify(call), deadline, resolve, reject })
      this.#deadlines.start(this.#waiting)
      this.#leaveSoon()
    })
  }

  #leaveSoon(): void {
    if (this.#leaving || this.#underWay >= BATCHES_MAX) return
    this.#leaving = true
    this.#clock.defer(() => void this.#depart())
  }

  async #depart(): Promise<void> {
    for (let first = this.#dependencies.before(); first; first = this.#dependencies.before())
      await first
    this.#leaving = false
    if (this.#waiting.length > 0) await this.#leave()
  }

  async #leave(): Promise<void> {
    const batch = this.#batch()
    if (batch.length === 0) return
    this.#underWay++
    const last = batch.at(-1)!.deadline
    const deadlines = new CallDeadlines(this.#clock, () => unanswered(this.#timeout))
    deadlines.start([...batch])
    try {
      const text = `[${batch.map((call) => call.text).join(',')}]`
      const values = [serverTimeoutOf(last - this.#clock.now()), this.#limits, text]
      const [remaining, sweeper, surplus, answers] = await this.#database.ask<Answers>(
        this.#call,
        values,
        last,
      )
      for (const [at, call] of batch.entries()) call.resolve(this.#whole(call, answers[at]))
      this.#dependencies.deadline(Number(remaining), sweeper)
      if (surplus) this.#dependencies.surplus()
    } catch (error) {
      for (const { reject } of batch) reject(error as LeaseholdError)
    }
    deadlines.stop()
    this.#underWay--
    if (this.#underWay === 0) this.#emptied?.()
    if (this.#waiting.length > 0) this.#leaveSoon()
  }

  /** Fetches an answer that was too large to be sent with the others. */
  #whole({ deadline }: Call, answer: unknown): never {
    const [kind, id] = answer as [string, string]
    if (kind !== 'stored') return answer as never
    const whole = this.#database.ask('stored($1)', [id], deadline)
    // If the call was late in the meantime, nothing receives it.
    whole.catch(() => {})
    return whole as never
  }

  #batch(): Call[] {
    this.#deadlines.expire()
    let characters = 0
    let count = 0
    for (; count < this.#waiting.length && count < BATCH_CALLS; count++) {
      characters += this.#waiting[count]!.text.length
      if (characters > BATCH_CHARACTERS && count > 0) break
    }
    // In the order in which they came, and so of their deadlines.
    const batch = this.#waiting.splice(0, count)
    this.#deadlines.restart(this.#waiting)
    return batch
  }
}

/** The server stops waiting before we do, so that nothing is carried out long after. */
export function serverTimeoutOf(timeout: number): number {
  return Math.max(Math.ceil(timeout * 0.8), 1)
}

function tooMany(): LeaseholdError {
  const message = `${CALLS_MAX} calls wait for the database, the maximum. Wait for some of them.`
  return new LeaseholdError('limit-exceeded', message)
}
