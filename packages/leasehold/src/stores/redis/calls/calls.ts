import { formatDuration, type LeaseholdError } from '../../../port/index.ts'
import type { Connection } from '../client.ts'
import { closedError, faultOf, isOutOfMemory, unknown } from '../faults.ts'
import type { Settings } from '../options.ts'
import { type Script, scriptFor } from '../scripts/index.ts'
import { FS, US } from './fields.ts'

/**
 * One run carries at most this many calls. While Redis works on one part of a turn's calls, this
 * process can handle the answers to the part before.
 */
const CALLS_MAX = 32
/** And at most this many characters, or one call with more. */
const TEXT_MAX = 64 * 1024

/** What every run returns, whatever was called. */
export interface RunReport {
  /** Milliseconds until a lease must be checked. */
  readonly remaining: number
  /** Identifies the data: another name means other data. */
  readonly uid: string
}

interface Call {
  readonly text: string
  /** It may need memory that Redis does not have. */
  readonly grows: boolean
  readonly answered: (answer: string) => void
  readonly failed: (error: LeaseholdError) => void
}

/**
 * Collects the calls of one turn of the event loop into one run of the script, or a few, which are
 * sent at once. Each call is answered separately; a failure of a run affects all its calls.
 */
export class Calls {
  readonly #connection: Connection
  readonly #settings: Settings
  readonly #key: string
  readonly #sender: string
  readonly #script: Script
  readonly #roomless: Script
  readonly #onReport: (report: RunReport) => void
  #queue: Call[] = []
  #number = 0
  #closed = false

  constructor(connection: Connection, settings: Settings, onReport: (report: RunReport) => void) {
    this.#connection = connection
    this.#settings = settings
    this.#key = `{${settings.namespace}}:meta`
    this.#sender = `leasehold:${settings.random.id()}`
    this.#script = scriptFor(settings.limits, false)
    this.#roomless = scriptFor(settings.limits, true)
    this.#onReport = onReport
  }

  /** Sends a change. `name` is its name in the script, and `grows` says whether it needs memory. */
  change<Answer>(
    name: string,
    request: string,
    values: readonly string[],
    grows: boolean,
    read: (answer: string) => Answer,
  ): Promise<Answer> {
    return this.#ask(`${name}${US}${request}${US}${values.join(US)}`, grows, read)
  }

  /** Sends a change that has its own compact form. */
  write<Answer>(text: string, grows: boolean, read: (answer: string) => Answer): Promise<Answer> {
    return this.#ask(text, grows, read)
  }

  /** Sends any other call, which needs no memory and may be repeated. */
  ask<Answer>(values: readonly string[], read: (answer: string) => Answer): Promise<Answer> {
    return this.#ask(values.join(US), false, read)
  }

  close(): void {
    this.#closed = true
    const queue = this.#queue
    this.#queue = []
    for (const call of queue) call.failed(closedError())
  }

  #ask<Answer>(text: string, grows: boolean, read: (answer: string) => Answer): Promise<Answer> {
    if (this.#closed) return Promise.reject(closedError())
    return new Promise((resolve, failed) => {
      const answered = (answer: string) => {
        try {
          resolve(read(answer))
        } catch (error) {
          failed(error as LeaseholdError)
        }
      }
      if (this.#queue.push({ text, grows, answered, failed }) === 1) {
        this.#settings.clock.defer(() => this.#flush())
      }
    })
  }

  #flush(): void {
    const queue = this.#queue
    this.#queue = []
    for (let first = 0; first < queue.length; ) {
      let [end, size] = [first, 0]
      do size += queue[end++]!.text.length
      while (end < queue.length && end - first < CALLS_MAX && size < TEXT_MAX)
      void this.#run(queue.slice(first, end), this.#script)
      first = end
    }
  }

  async #run(calls: readonly Call[], script: Script): Promise<void> {
    if (calls.length === 0) return
    const { clock, timeout } = this.#settings
    const fail = (error: LeaseholdError) => {
      for (const call of calls) call.failed(error)
    }
    const timer = clock.timer(clock.now() + timeout, () =>
      fail(unknown(`Redis did not answer within ${formatDuration(timeout)}`)),
    )
    try {
      const [remaining, uid, ...answers] = await this.#send(calls, script)
      this.#onReport({ remaining: remaining === '' ? Infinity : Number(remaining), uid: uid! })
      await this.#acknowledged()
      for (const [index, call] of calls.entries()) call.answered(answers[index]!)
    } catch (error) {
      if (!isOutOfMemory(error) || script === this.#roomless) fail(faultOf(error))
      else await this.#withoutRoom(calls, faultOf(error))
    } finally {
      timer.cancel()
    }
  }

  async #send(calls: readonly Call[], script: Script): Promise<string[]> {
    const values = [this.#sender, String(++this.#number), ...calls.map(({ text }) => text)]
    const answer = await this.#connection.run(script, this.#key, values)
    return (answer as string).split(FS)
  }

  /** Calls that need memory are refused, but releases and renewals must still work. */
  #withoutRoom(calls: readonly Call[], error: LeaseholdError): Promise<void> {
    for (const call of calls) if (call.grows) call.failed(error)
    return this.#run(
      calls.filter((call) => !call.grows),
      this.#roomless,
    )
  }

  /**
   * WAIT covers everything that this connection has written, and so this run, too. It needs no
   * pipeline: what other runs write in the meantime only makes it wait for more.
   */
  async #acknowledged(): Promise<void> {
    const { replicas, replicasTimeout } = this.#settings
    if (replicas === 0) return
    const count = await this.#connection.wait!(replicas, replicasTimeout)
    if (count >= replicas) return
    throw unknown(
      `it was done, but only ${count} of ${replicas} replicas had it within ${formatDuration(replicasTimeout)}: a failover might lose it`,
    )
  }
}
