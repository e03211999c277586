import { HEALTH, SERVICES } from 'leasehold'
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
  /** For each service with such checks: the timers of those that are critical. */
  readonly #timers = new Map<Key, Map<string, Timer>>()

  constructor(services: Services, clock: Clock, log: Logger) {
    this.#services = services
    this.#clock = clock
    this.#log = log
  }

  async open(): Promise<void> {
    for (const service of await this.#services.list()) this.#look(service)
  }

  onEvent({ type, key, value }: Event): void {
    const entry = key.startsWith(HEALTH) ? `${SERVICES}${key.slice(HEALTH.length)}` : key
    if (!entry.startsWith(SERVICES)) return
    const isAsked = key === entry && type !== 'removed' && value?.includes('deregisterAfter')
    if (!isAsked && !this.#timers.has(entry)) return
    this.#refresh(entry).catch((error) =>
      this.#log.error({ err: error }, 'the Consul API cannot look at a service'),
    )
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
    const key = `${SERVICES}${service.name}/${service.id}`
    const asked = service.checks.filter(({ deregisterAfter }) => deregisterAfter !== undefined)
    if (asked.length === 0) {
      this.#forget(key)
      return
    }
    const timers = this.#timers.get(key) ?? new Map<string, Timer>()
    this.#timers.set(key, timers)
    for (const { id, status, deregisterAfter } of asked) {
      if (status !== 'critical') {
        timers.get(id)?.cancel()
        timers.delete(id)
      } else if (!timers.has(id)) {
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

  #end({ id, name }: Service): void {
    this.#forget(`${SERVICES}${name}/${id}`)
    this.#log.warn({ service: name, instance: id }, 'deregistered: its check was critical too long')
    this.#services.deregister(id).catch((error) => {
      // Another server was first.
      if (!(error instanceof ConsulError)) {
        this.#log.error({ err: error }, 'the Consul API cannot deregister a service')
      }
    })
  }
}
