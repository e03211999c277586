import { type Client, Emitter, type Hold } from '../../../client/index.ts'
import { type Duration, isLeaseholdError, type Key } from '../../../port/index.ts'
import { countOf, durationOf, keyPart, objectOf } from '../../arguments.ts'
import { onAbort, sleep } from '../../sleep.ts'
import { type BrakeOptions, brakeLimits } from '../brake.ts'
import { type CheckPolicy, checkedPolicy } from '../check/check-policy.ts'
import { type CheckChange, CheckSchedule, type CheckScheduleOptions } from './check-schedule.ts'
import type { Lookup, Probe, ProbeMaker } from './probe.ts'

export interface CheckerOptions {
  /** Checks only this service's instances. Those of all services if not given. */
  readonly service?: string | undefined
  /** Where checks may go. */
  readonly allow?: CheckPolicy | undefined
  /** How hosts are looked up. The machine's own way if not given. */
  readonly lookup?: Lookup | undefined
  /** Certificates, in PEM, of those who may vouch for instances. The usual ones if not given. */
  readonly ca?: string | readonly string[] | undefined
  /** Looks at instances in another way than over the network; the rules in `allow` are then its own. */
  readonly probe?: Probe | undefined
  /** How many are looked at at the same time at most. 32 if not given. */
  readonly concurrency?: number | undefined
  /** Nobody is checked more often, whatever they ask for. 1 s if not given. */
  readonly everyMin?: Duration | undefined
  /** How long the duty stays with a checker that has died. 10 s if not given. */
  readonly ttl?: Duration | undefined
  /** The brake on mass eviction, per service; `false` for none. */
  readonly brake?: BrakeOptions | false | undefined
}

export interface CheckerEvents {
  /** It has the duty now, or has it no more. */
  active: { readonly key: Key }
  idle: { readonly key: Key }
  /** What the checks of an instance have come to has changed. */
  changed: CheckChange
}

const RETRY_MS = 1000

/**
 * Runs the health checks that instances ask for, and writes down what it found where everyone who
 * looks for instances sees it.
 *
 * **Promised.** Of all checkers for the same services one works at a time, in whatever process; when
 * it dies another takes over, from where it was. An instance goes down and comes up only after as
 * many results in a row as it asked for. Checks go only where they may: see `CheckPolicy`.
 *
 * **Not promised.** That a critical instance is never used: whoever looks it up in the moment before
 * the news arrive still finds it.
 */
export class Checker implements AsyncDisposable {
  readonly key: Key
  readonly #client: Client
  readonly #options: CheckerOptions
  readonly #maker: ProbeMaker
  readonly #limits: Pick<CheckScheduleOptions, 'brake' | 'concurrency' | 'everyMin'>
  readonly #events = new Emitter<CheckerEvents>()
  readonly #closing = new AbortController()
  readonly #done: Promise<void>
  #hold: Hold | undefined = undefined

  constructor(client: Client, options: CheckerOptions, maker: ProbeMaker) {
    this.#client = client
    this.#options = objectOf('options', options)
    this.#maker = maker
    const { service } = options
    this.key = service === undefined ? 'checkers/all' : `checkers/of/${keyPart('service', service)}`
    this.#limits = {
      brake: brakeLimits(options.brake),
      concurrency: countOf('concurrency', options.concurrency ?? 32, 1, 1000),
      everyMin: durationOf('everyMin', options.everyMin ?? '1s', '1ms', '1h'),
    }
    checkedPolicy(options.allow)
    durationOf('ttl', options.ttl ?? '10s', '10ms', '1h')
    this.#done = this.#run()
  }

  /** Whether this is the checker that works. */
  get active(): boolean {
    return this.#hold?.held === true
  }

  on<Name extends keyof CheckerEvents>(
    name: Name,
    listener: (change: CheckerEvents[Name]) => void,
  ): () => void {
    return this.#events.on(name, listener)
  }

  /** Stops checking and gives the duty to the next. What was found stands until then. */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.#done
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #run(): Promise<void> {
    const { ttl, allow, lookup, ca } = this.#options
    const { signal } = this.#closing
    const probe =
      this.#options.probe ?? (await this.#maker({ policy: checkedPolicy(allow), lookup, ca }))
    const claims = [{ key: this.key, value: this.#client.holder }]
    while (!signal.aborted) {
      try {
        const hold = await this.#client.hold(claims, { strategy: 'election', ttl, signal })
        await this.#runChecks(hold, probe)
      } catch (error) {
        if (signal.aborted || isLeaseholdError(error, 'closed')) return
        const detail = `the hold cannot be had: ${String(error)}`
        this.#client.emit({
          recipe: 'registry',
          event: 'idle',
          key: this.key,
          detail,
          level: 'warn',
        })
        await this.#waitToRetry()
      }
    }
  }

  async #runChecks(hold: Hold, probe: Probe): Promise<void> {
    this.#hold = hold
    const schedule = new CheckSchedule(this.#client, {
      ...this.#limits,
      service: this.#options.service,
      probe,
      assertActive: () => hold.assertHeld(),
      onChange: (change) => this.#events.emit('changed', change),
    })
    this.#events.emit('active', { key: this.key })
    let ignore = () => {}
    const over = new Promise<unknown>((resolve) => {
      ignore = onAbort([hold.signal, this.#closing.signal], resolve)
    })
    try {
      await Promise.race([over, schedule.ready.then(() => over)])
    } finally {
      ignore()
      schedule.stop()
      this.#events.emit('idle', { key: this.key })
      await hold[Symbol.asyncDispose]()
    }
  }

  async #waitToRetry(): Promise<void> {
    // Where it is cut short, the loop sees why.
    await sleep(this.#client, RETRY_MS, this.#closing.signal).catch(() => {})
  }
}
