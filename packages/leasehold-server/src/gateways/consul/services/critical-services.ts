import { HEALTH, SERVICES, servicesKey } from 'leasehold'
import type { Clock, Event, Key, Timer } from 'leasehold/port'
import type { Logger } from 'pino'
import { ConsulError } from '../answer.ts'
import type { Service } from './catalog-entry.ts'
import type { Services } from './services.ts'

/**
 * Deregisters services whose check was critical for as long as their registration says. Each server
 * measures this by itself, from when it sees that the check is critical; a restart begins again.
 */
export class CriticalServices {
  readonly #services: Services
  readonly #clock: Clock
  readonly #log: Logger
  readonly #onFailure: (error: unknown) => void
  /** For each service with such checks: the timers of those that are critical. */
  readonly #timers = new Map<Key, Map<string, Timer>>()

  constructor(
    services: Services,
    clock: Clock,
    log: Logger,
    /** The work of an event failed: `open` has to be called again. */
    onFailure: (error: unknown) => void,
  ) {
    this.#onFailure = onFailure
    this.#services = services
    this.#clock = clock
    this.#log = log
  }

  async open(): Promise<void> {
    const services = await this.#services.list()
    const keys = new Set(services.map(keyOf))
    for (const key of [...this.#timers.keys()]) if (!keys.has(key)) this.#forget(key)
    for (const service of services) this.#look(service)
  }

  onEvent({ type, key, value }: Event): void {
    const entry = key.startsWith(HEALTH) ? `${SERVICES}${key.slice(HEALTH.length)}` : key
    if (!entry.startsWith(SERVICES)) return
    const isAsked = key === entry && type !== 'removed' && value?.includes('deregisterAfter')
    if (!isAsked && !this.#timers.has(entry)) return
    this.#refresh(entry).catch(this.#onFailure)
  }

  close(): void {
    for (const key of [...this.#timers.keys()]) this.#forget(key)
  }

  async #refresh(key: Key): Promise<void> {
    const service = await this.#services.at(key)
    if (service !== undefined) this.#look(service)
    else this.#forget(key)
  }

  #look(service: Service): void {
    const key = keyOf(service)
    const asked = service.checks.filter(({ deregisterAfter }) => deregisterAfter !== undefined)
    if (asked.length === 0) {
      this.#forget(key)
      return
    }
    const timers = this.#timers.get(key) ?? new Map<string, Timer>()
    this.#timers.set(key, timers)
    const critical = asked.filter(({ status }) => status === 'critical')
    for (const [id, timer] of timers) {
      if (critical.some((check) => check.id === id)) continue
      timer.cancel()
      timers.delete(id)
    }
    for (const { id, deregisterAfter } of critical) {
      if (!timers.has(id)) {
        const at = this.#clock.now() + deregisterAfter!
        timers.set(
          id,
          this.#clock.timer(at, () => this.#end(service)),
        )
      }
    }
  }

  #forget(key: Key): void {
    for (const timer of this.#timers.get(key)?.values() ?? []) timer.cancel()
    this.#timers.delete(key)
  }

  #end(service: Service): void {
    const { id, name } = service
    this.#forget(keyOf(service))
    this.#log.warn({ service: name, instance: id }, 'deregistered: its check was critical too long')
    this.#services.deregister(id).catch((error) => {
      // Another server was first.
      if (!(error instanceof ConsulError)) this.#onFailure(error)
    })
  }
}

function keyOf({ name, id }: Service): Key {
  return servicesKey(name, id)
}
