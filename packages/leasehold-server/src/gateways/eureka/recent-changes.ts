import type { Clock } from 'leasehold/port'
import type { RegistryView, ServiceInstance } from '../registry-view/index.ts'

export interface RecentChange {
  readonly action: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly instance: ServiceInstance
  readonly at: number
}

/** As long as Eureka keeps them: clients ask every 30 s. */
const KEPT_MS = 180_000
const CHANGES_MAX = 10_000

/**
 * The last change of each instance, for a few minutes. A client that missed one notices it by the
 * hash code of all statuses, and fetches everything.
 */
export class RecentChanges {
  readonly #view: RegistryView
  readonly #clock: Clock
  readonly #known = new Map<string, ReadonlyMap<string, ServiceInstance>>()
  /** The oldest first. */
  readonly #changes = new Map<string, RecentChange>()

  constructor(view: RegistryView, clock: Clock) {
    this.#view = view
    this.#clock = clock
    for (const service of view.services) this.#known.set(service, this.#instances(service))
    view.onChange((changed) => {
      for (const service of changed) this.#compare(service)
    })
  }

  *[Symbol.iterator](): IterableIterator<RecentChange> {
    this.#forgetOld()
    yield* this.#changes.values()
  }

  #instances(service: string): ReadonlyMap<string, ServiceInstance> {
    return new Map(this.#view.service(service)?.all.map((each) => [each.id, each]))
  }

  #compare(service: string): void {
    const before = this.#known.get(service) ?? new Map<string, ServiceInstance>()
    const after = this.#instances(service)
    if (after.size === 0) this.#known.delete(service)
    else this.#known.set(service, after)
    for (const [id, instance] of after) {
      const known = before.get(id)
      if (known === undefined) this.#add('ADDED', instance)
      else if (!isSame(known, instance)) this.#add('MODIFIED', instance)
    }
    for (const [id, instance] of before) if (!after.has(id)) this.#add('DELETED', instance)
    this.#forgetOld()
  }

  #add(action: RecentChange['action'], instance: ServiceInstance): void {
    const key = `${instance.service}/${instance.id}`
    this.#changes.delete(key)
    this.#changes.set(key, { action, instance, at: this.#clock.now() })
  }

  #forgetOld(): void {
    const oldest = this.#clock.now() - KEPT_MS
    for (const [key, { at }] of this.#changes) {
      if (at >= oldest && this.#changes.size <= CHANGES_MAX) return
      this.#changes.delete(key)
    }
  }
}

/** Most are the same object: then there is nothing to compare. */
function isSame(before: ServiceInstance, after: ServiceInstance): boolean {
  return before === after || JSON.stringify(before) === JSON.stringify(after)
}
