import { type Client, Emitter, type Hold } from '../../../client/index.ts'
import { type Duration, isLeaseholdError, type Key, knownNames } from '../../../port/index.ts'
import { countOf, durationOf, keyPart, optionsOf } from '../../arguments.ts'
import { onAbort, sleep } from '../../sleep.ts'
import { type BrakeOptions, brakeLimits } from '../brake.ts'
import { type CheckPolicy, checkedPolicy } from '../check/check-policy.ts'
import { type CheckChange, CheckSchedule, type CheckScheduleOptions } from './check-schedule.ts'
import type { Lookup, Probe, ProbeLoader, ProbeSettings } from './probe.ts'

export interface CheckerOptions {
  /** Check only the instances of this service. Default: all services. */
  readonly service?: string | undefined
  /** Where checks may connect to. */
  readonly allow?: CheckPolicy | undefined
  /** How hosts are resolved. Default: by the system. */
  readonly lookup?: Lookup | undefined
  /** CA certificates for the instances, in PEM. Default: the usual ones. */
  readonly ca?: string | readonly string[] | undefined
  /** A custom probe. It must enforce the rules of `allow` itself. */
  readonly probe?: Probe | undefined
  /** The number of concurrent checks. Default: 32. */
  readonly concurrency?: number | undefined
  /** The shortest interval between checks of an instance, whatever it asks for. Default: 1 s. */
  readonly everyMin?: Duration | undefined
  /** How soon another checker takes over from a dead one. Default: 10 s. */
  readonly ttl?: Duration | undefined
  /** The brake on mass eviction, per service; `false` for none. */
  readonly brake?: BrakeOptions | false | undefined
}

const CHECKER_OPTIONS = knownNames<CheckerOptions>({
  service: true,
  allow: true,
  lookup: true,
  ca: true,
  probe: true,
  concurrency: true,
  everyMin: true,
  ttl: true,
  brake: true,
})

export interface CheckerEvents {
  /** This checker became active, or is no longer active. */
  active: { readonly key: Key }
  idle: { readonly key: Key }
  /** The check status of an instance has changed. */
  changed: CheckChange
}

const RETRY_MS = 1000

export function probeSettingsOf({ allow, lookup, ca }: CheckerOptions): ProbeSettings {
  return { policy: checkedPolicy(allow), lookup, ca }
}

/**
 * Runs the health checks that instances ask for, and publishes the results for discovery.
 *
 * **Promised.** Of all checkers for the same services, one is active at a time, in any process. If
 * it dies, another takes over and continues from its results. An instance goes down or comes up
 * only after as many results in a row as it asked for. Checks connect only where they may: see
 * `CheckPolicy`.
 *
 * **Not promised.** A critical instance may still be used: a process that looks it up before the
 * change arrives still finds it.
 */
export class Checker implements AsyncDisposable {
  readonly key: Key
  readonly #client: Client
  readonly #options: CheckerOptions
  readonly #load: ProbeLoader
  readonly #limits: Pick<CheckScheduleOptions, 'brake' | 'concurrency' | 'everyMin'>
  readonly #events = new Emitter<CheckerEvents>({ active: true, idle: true, changed: true })
  readonly #closing = new AbortController()
  readonly #done: Promise<void>
  #hold: Hold | undefined = undefined

  constructor(client: Client, options: CheckerOptions, load: ProbeLoader) {
    this.#client = client
    this.#options = optionsOf('checker', options, CHECKER_OPTIONS)
    this.#load = load
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

  /** Whether this is the active checker. */
  get active(): boolean {
    return this.#hold?.held === true
  }

  on<Name extends keyof CheckerEvents>(
    name: Name,
    listener: (change: CheckerEvents[Name]) => void,
  ): () => void {
    return this.#events.on(name, listener)
  }

  /** Stops checking and lets the next checker take over. The results stay until then. */
  async close(): Promise<void> {
    this.#closing.abort()
    await this.#done
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #run(): Promise<void> {
    const { ttl } = this.#options
    const { signal } = this.#closing
    const probe =
      this.#options.probe ?? (await this.#load()).networkProbe(probeSettingsOf(this.#options))
    const { key } = this
    const claims = [{ key, value: this.#client.holder }]
    while (!signal.aborted) {
      try {
        const hold = await this.#client.hold(claims, { strategy: 'election', ttl, signal })
        await this.#runChecks(hold, probe)
      } catch (error) {
        if (signal.aborted || isLeaseholdError(error, 'closed')) return
        const detail = `the checker cannot become active: ${String(error)}`
        this.#client.emit({ recipe: 'registry', event: 'idle', key, detail, level: 'warn' })
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
    // If the wait is cut short, the loop sees why.
    await sleep(this.#client, RETRY_MS, this.#closing.signal).catch(() => {})
  }
}
