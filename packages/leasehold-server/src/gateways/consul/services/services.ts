import { HEALTH, healthKey, type Registry, SERVICES, servicesKey } from 'leasehold'
import {
  type Claim,
  type Event,
  isLeaseholdError,
  type Key,
  type LeaseId,
  type LeaseStore,
} from 'leasehold/port'
import { DRAINED, drain, returnDrained } from '../../../registry/drain.ts'
import { ConsulError } from '../answer.ts'
import { NODE_CHECKS, TTL } from '../names.ts'
import { readAll } from '../read-all.ts'
import { instanceEntry, type Service, serviceOf } from './catalog-entry.ts'
import type { StoredCheck } from './check.ts'
import type { ServiceDefinition } from './definition.ts'

export interface ServicesOptions {
  readonly store: LeaseStore
  /** The store for registrations: it refuses checks that this server would not run. */
  readonly registrations: LeaseStore
  readonly registry: Registry
  /** The work of an event failed: `recover` has to be called. */
  readonly onFailure: (error: unknown) => void
  /** The address of services that give none. */
  readonly host: string
}

/** What has checks: a service, or the node. */
interface Subject {
  readonly key: Key
  /** `undefined` for the node before its first check. */
  readonly claim: Claim | undefined
  readonly checks: readonly StoredCheck[]
  valueWith(checks: readonly StoredCheck[]): string
}

export const NODE_MAINTENANCE = '_node_maintenance'
const NODE_MAINTENANCE_REASON =
  'Maintenance mode is enabled for this node, but no reason was provided. This is a default message.'
const HOLDER = 'consul-agent'
const HINTS_MAX = 16_384

/**
 * Consul's services and checks on the registry. A service is an instance of the registry, under a
 * lease that lives until the service is deregistered. Its checks are in its metadata. A ttl check has
 * a lease of its own with that ttl; when it expires, the check is critical.
 */
export class Services {
  readonly #store: LeaseStore
  readonly #registrations: LeaseStore
  readonly #registry: Registry
  readonly #onFailure: (error: unknown) => void
  readonly #host: string
  /** Where a service or a check was seen last, by its id. */
  readonly #hints = new Map<string, Key>()
  /** The writes of each key happen one after the other. */
  readonly #writes = new Map<Key, Promise<unknown>>()

  constructor({ store, registrations, registry, onFailure, host }: ServicesOptions) {
    this.#store = store
    this.#registrations = registrations
    this.#registry = registry
    this.#onFailure = onFailure
    this.#host = host
  }

  /** The instances of one service, or of all, sorted by id. */
  async list(name?: string): Promise<Service[]> {
    const isKey = name === undefined || isKeyPart(name)
    if (!isKey) return []
    const entries = await this.#claims(name === undefined ? SERVICES : servicesKey(name))
    const results = await this.#claims(name === undefined ? HEALTH : healthKey(name))
    const services = [...entries].flatMap(([key, [claim]]) => {
      const health = results.get(`${HEALTH}${key.slice(SERVICES.length)}`)
      const details = claim && this.#registry.details(claim, health ?? [])
      return details ? [serviceOf(details)] : []
    })
    return services.sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  /** The service at a key of the registry. */
  async at(key: Key): Promise<Service | undefined> {
    const { claims } = await this.#store.read({ key, limit: 1 })
    if (claims[0] === undefined) return undefined
    const results = await this.#store.read({ key: `${HEALTH}${key.slice(SERVICES.length)}` })
    return this.#serviceIn(claims[0], results.claims)
  }

  async byId(id: string): Promise<Service | undefined> {
    return this.#find(id, (service) => service.id === id)
  }

  /** The checks that belong to no service. */
  async nodeChecks(): Promise<readonly StoredCheck[]> {
    return (await this.#node()).checks
  }

  /** Registers a service, or describes it anew: its checks then keep their status. */
  async register(service: ServiceDefinition, replacesChecks: boolean): Promise<void> {
    const { id, name } = service
    const before = await this.byId(id)
    if (before !== undefined && before.own === undefined) throw notOwn(id)
    const key = servicesKey(name, id)
    if (before?.name === name) {
      await this.#alone(key, async () => {
        const current = await this.at(key)
        if (current?.own === undefined) await this.#grant(service)
        else await this.#describe(current, withStates(service, current.own, replacesChecks))
      })
    } else {
      await this.#alone(key, () => this.#grant(service))
      if (before !== undefined) await this.#end(before)
    }
    this.#remember(id, key)
  }

  async deregister(id: string): Promise<void> {
    const service = await this.byId(id)
    if (service === undefined) throw unknownService(id)
    await this.#end(service)
  }

  async maintain(id: string, reason: string | undefined): Promise<void> {
    const service = await this.byId(id)
    if (service === undefined) throw unknownService(id)
    // Its own process would overwrite what is written into its entry.
    if (service.own === undefined) await this.#drain(service, reason)
    else {
      await this.#alone(keyOf(service), async () => {
        const current = await this.at(keyOf(service))
        if (current?.own) await this.#update(current, current.own, reason)
      })
    }
  }

  async maintainNode(reason: string | undefined): Promise<void> {
    await this.#alone(NODE_CHECKS, async () => {
      const node = await this.#node()
      const others = node.checks.filter(({ id }) => id !== NODE_MAINTENANCE)
      if (reason === undefined) return this.#write(node, others)
      return this.#write(node, [
        ...others,
        {
          ...{ id: NODE_MAINTENANCE, name: 'Node Maintenance Mode', type: 'maintenance' },
          ...{ notes: reason || NODE_MAINTENANCE_REASON, interval: '', timeout: '' },
          ...{ status: 'critical', output: '' },
        },
      ])
    })
  }

  async addCheck(check: StoredCheck, serviceId: string): Promise<void> {
    const key = serviceId === '' ? NODE_CHECKS : await this.#keyOfService(serviceId)
    if (key === NODE_CHECKS && check.probe !== undefined) {
      throw new ConsulError(
        501,
        'Leasehold checks services only. Give the check a ServiceID, or use TTL: see its table of differences',
      )
    }
    await this.#alone(key, async () => {
      const subject = (await this.#subject(key))!
      const known = subject.checks.find(({ id }) => id === check.id)
      const kept = known ? { ...check, status: known.status, output: known.output } : check
      const written = await this.#write(subject, [
        ...subject.checks.filter((each) => each !== known),
        kept,
      ])
      await this.#startTtl(kept, written)
    })
    this.#remember(check.id, key)
  }

  async removeCheck(id: string): Promise<void> {
    await this.#onCheck(id, async (subject, check) => {
      await this.#write(
        subject,
        subject.checks.filter((each) => each !== check),
      )
      await this.#endTtl(check)
    })
  }

  /** A client says how a ttl check is, and has to say so again within the ttl. */
  async report(id: string, status: StoredCheck['status'], output: string): Promise<void> {
    await this.#onCheck(id, async (subject, check) => {
      if (check.type !== 'ttl') throw noTtl(id)
      // The lease first: a check that is passing without one would stay so for ever.
      await this.#renewTtl(check, subject.claim!.lease)
      if (check.status !== status || check.output !== output) {
        await this.#set(subject, check, { status, output })
      }
    })
  }

  /** The ttl of a check has passed. */
  onEvent({ type, key, end }: Event): void {
    if (type !== 'removed' || end?.reason !== 'expired' || !key.startsWith(TTL)) return
    this.#expire(key.slice(TTL.length)).catch(this.#onFailure)
  }

  /** Expires the ttl checks whose ttl passed while no server was running. */
  async recover(): Promise<void> {
    const checks = (await this.list()).flatMap(({ own }) => own?.checks ?? [])
    for (const { id, type, status } of [...checks, ...(await this.nodeChecks())]) {
      if (type === 'ttl' && status !== 'critical') await this.#expire(id)
    }
  }

  async #expire(id: string): Promise<void> {
    const expired = this.#onCheck(id, async (subject, check) => {
      const isRenewed = (await this.#store.read({ key: `${TTL}${id}`, limit: 1 })).count > 0
      if (isRenewed || check.type !== 'ttl') return
      const last = check.output && ` (last output before timeout follows): ${check.output}`
      const isNoted = check.output.startsWith('TTL expired')
      const output = isNoted ? check.output : `TTL expired${last}`
      if (check.status === 'critical' && isNoted) return
      await this.#set(subject, check, { status: 'critical', output })
    })
    await expired.catch((error: unknown) => {
      // It was deregistered meanwhile.
      if (!(error instanceof ConsulError)) throw error
    })
  }

  /** Grants the lease of a new service. Another one with its id was there first: describes that. */
  async #grant(service: ServiceDefinition): Promise<void> {
    const { key, value, labels } = this.#entry(service, undefined)
    const claims = [{ key, value }]
    const wanted = { holder: HOLDER, ttl: Infinity, labels, claims, ifFree: true }
    const answer = await this.#registrations.grant(wanted)
    if (answer.outcome === 'granted') {
      for (const check of service.checks) await this.#startTtl(check, answer.lease)
      return
    }
    const current = await this.at(key)
    if (current?.own === undefined) throw notOwn(service.id)
    await this.#describe(current, withStates(service, current.own, false))
  }

  async #describe(current: Service, service: ServiceDefinition): Promise<void> {
    await this.#update(current, service, current.details.maintenance)
    const kept = new Set(service.checks.map(({ id }) => id))
    for (const check of current.own!.checks) if (!kept.has(check.id)) await this.#endTtl(check)
    for (const check of service.checks) await this.#startTtl(check, current.details.lease)
  }

  async #update(
    { details: { lease, token } }: Service,
    service: ServiceDefinition,
    maintenance: string | undefined,
  ): Promise<void> {
    const { key, value } = this.#entry(service, maintenance)
    await this.#registrations.update({ lease, key, token, value })
  }

  #entry(service: ServiceDefinition, maintenance: string | undefined) {
    if (service.checks.filter(({ probe }) => probe !== undefined).length > 1) {
      throw new ConsulError(
        501,
        'Leasehold runs one HTTP, TCP or GRPC check per service: see its table of differences',
      )
    }
    return instanceEntry(this.#registry, service, { host: this.#host, maintenance })
  }

  async #end(service: Service): Promise<void> {
    const { details, own } = service
    const revoking = this.#store.revoke({ target: { lease: details.lease }, by: HOLDER })
    await unlessGone(revoking)
    for (const check of own?.checks ?? []) await this.#endTtl(check)
  }

  async #drain(service: Service, reason: string | undefined): Promise<void> {
    const request = { service: service.name, instance: service.id, by: HOLDER }
    if (reason !== undefined) {
      await drain(this.#store, { ...request, why: reason || 'maintenance' })
    } else if (service.checks.some(({ output }) => output.startsWith(DRAINED))) {
      await returnDrained(this.#store, { ...request, why: 'maintenance is over' })
    }
  }

  async #startTtl(check: StoredCheck, lease: LeaseId): Promise<void> {
    if (check.ttl === undefined) return
    await this.#endTtl(check)
    await this.#renewTtl(check, lease)
  }

  /** Without child leases, a ttl lease that outlives its check ends by itself. */
  async #renewTtl({ id, ttl = 0 }: StoredCheck, parent: LeaseId): Promise<void> {
    const key = `${TTL}${id}`
    const { claims } = await this.#store.read({ key, limit: 1 })
    if (claims[0] && (await this.#store.renew([claims[0].lease])).lost.length === 0) return
    const { guarantees } = this.#store
    await this.#store.grant({
      holder: HOLDER,
      ttl: Math.min(Math.max(ttl, guarantees.ttl.min), guarantees.ttl.max),
      ...(guarantees.childLeases && { parent }),
      claims: [{ key }],
      ifFree: true,
    })
  }

  async #endTtl({ id }: Pick<StoredCheck, 'id'>): Promise<void> {
    const { claims } = await this.#store.read({ key: `${TTL}${id}`, limit: 1 })
    const lease = claims[0]?.lease
    if (lease !== undefined) await unlessGone(this.#store.revoke({ target: { lease }, by: HOLDER }))
  }

  /** Calls `act` with the check and its owner, while nobody else changes them here. */
  async #onCheck(
    id: string,
    act: (subject: Subject, check: StoredCheck) => Promise<void>,
  ): Promise<void> {
    const key = await this.#keyOfCheck(id)
    await this.#alone(key, async () => {
      const subject = await this.#subject(key)
      const check = subject?.checks.find((each) => each.id === id)
      if (subject === undefined || check === undefined) throw unknownCheck(id)
      await act(subject, check)
    })
  }

  async #keyOfCheck(id: string): Promise<Key> {
    const has = (checks: readonly { readonly id: string }[]) =>
      checks.some((each) => each.id === id)
    const hint = this.#hints.get(id)
    if (hint !== undefined && has((await this.#subject(hint))?.checks ?? [])) return hint
    if (has(await this.nodeChecks())) return NODE_CHECKS
    const service = await this.#find(id, ({ checks }) => has(checks))
    if (service === undefined) throw unknownCheck(id)
    if (!has(service.own?.checks ?? [])) throw noTtl(id)
    return keyOf(service)
  }

  async #keyOfService(id: string): Promise<Key> {
    const service = await this.byId(id)
    if (service === undefined) throw new ConsulError(404, `ServiceID "${id}" does not exist`)
    if (service.own === undefined) throw notOwn(id)
    return keyOf(service)
  }

  async #set(
    subject: Subject,
    check: StoredCheck,
    state: Pick<StoredCheck, 'status' | 'output'>,
  ): Promise<void> {
    const checks = subject.checks.map((each) => (each === check ? { ...check, ...state } : each))
    await this.#write(subject, checks)
  }

  /** Returns the lease. */
  async #write(
    { key, claim, valueWith }: Subject,
    checks: readonly StoredCheck[],
  ): Promise<LeaseId> {
    const value = valueWith(checks)
    if (claim !== undefined) {
      const { lease, token } = claim
      await this.#registrations.update({ lease, key, token, value })
      return lease
    }
    const claims = [{ key, value }]
    const answer = await this.#store.grant({ holder: HOLDER, ttl: Infinity, claims, ifFree: true })
    if (answer.outcome === 'granted') return answer.lease
    throw new ConsulError(500, 'another server changed the checks of the node. Try again')
  }

  async #subject(key: Key): Promise<Subject | undefined> {
    if (key === NODE_CHECKS) return this.#node()
    const { claims } = await this.#store.read({ key, limit: 1 })
    const service = claims[0] && this.#serviceIn(claims[0], [])
    if (service?.own === undefined) return undefined
    const { own, details } = service
    const { maintenance } = details
    const valueWith = (checks: readonly StoredCheck[]) =>
      this.#entry({ ...own, checks }, maintenance).value
    return { key, claim: claims[0], checks: own.checks, valueWith }
  }

  async #node(): Promise<Subject> {
    const { claims } = await this.#store.read({ key: NODE_CHECKS, limit: 1 })
    const checks = JSON.parse(claims[0]?.value ?? '[]') as StoredCheck[]
    return { key: NODE_CHECKS, claim: claims[0], checks, valueWith: JSON.stringify }
  }

  async #find(hint: string, matches: (service: Service) => boolean): Promise<Service | undefined> {
    const key = this.#hints.get(hint)
    const hinted = key?.startsWith(SERVICES) ? await this.at(key) : undefined
    if (hinted && matches(hinted)) return hinted
    const found = (await this.list()).find(matches)
    if (found !== undefined) this.#remember(hint, keyOf(found))
    return found
  }

  #serviceIn(claim: Claim, results: readonly Claim[]): Service | undefined {
    const details = this.#registry.details(claim, results)
    return details && serviceOf(details)
  }

  async #claims(prefix: string): Promise<Map<Key, readonly Claim[]>> {
    const keys = await readAll(this.#store, prefix)
    return new Map(keys.map(({ key, claims }) => [key, claims]))
  }

  #remember(id: string, key: Key): void {
    this.#hints.delete(id)
    this.#hints.set(id, key)
    if (this.#hints.size > HINTS_MAX) this.#hints.delete(this.#hints.keys().next().value!)
  }

  /** Runs `act` after the earlier ones of the same key. */
  async #alone<Result>(key: Key, act: () => Promise<Result>): Promise<Result> {
    const before = this.#writes.get(key) ?? Promise.resolve()
    const acting = before.then(act, act)
    const settled = acting.catch(() => {})
    this.#writes.set(key, settled)
    try {
      return await acting
    } finally {
      if (this.#writes.get(key) === settled) this.#writes.delete(key)
    }
  }
}

/** A check that was there keeps its state, and those that are not named stay unless they are replaced. */
function withStates(
  service: ServiceDefinition,
  before: ServiceDefinition,
  replacesChecks: boolean,
): ServiceDefinition {
  const known = new Map(before.checks.map((check) => [check.id, check]))
  const checks = service.checks.map((check) => {
    const { status, output } = known.get(check.id) ?? check
    known.delete(check.id)
    return { ...check, status, output }
  })
  return { ...service, checks: replacesChecks ? checks : [...checks, ...known.values()] }
}

function keyOf({ name, id }: Service): Key {
  return servicesKey(name, id)
}

function isKeyPart(name: string): boolean {
  return name !== '' && !name.includes('/')
}

async function unlessGone(call: Promise<unknown>): Promise<void> {
  await call.catch((error: unknown) => {
    const isGone =
      isLeaseholdError(error, 'lease-ended') || isLeaseholdError(error, 'lease-not-found')
    if (!isGone) throw error
  })
}

function unknownService(id: string): ConsulError {
  return new ConsulError(
    404,
    `Unknown service ID "${id}". Ensure that the service ID is passed, not the service name.`,
  )
}

function unknownCheck(id: string): ConsulError {
  return new ConsulError(
    404,
    `Unknown check ID "${id}". Ensure that the check ID is passed, not the check name.`,
  )
}

function noTtl(id: string): ConsulError {
  return new ConsulError(500, `CheckID "${id}" does not have associated TTL`)
}

function notOwn(id: string): ConsulError {
  return new ConsulError(
    409,
    `${id} was not registered with Consul's API. Change it with what registered it, or deregister it first`,
  )
}
