import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type InstanceUpdate, servicesKey } from 'leasehold'
import { type Claim, type Clock, LeaseholdError, type LeaseId, show } from 'leasehold/port'
import type { Admission, Principal } from '../../access/index.ts'
import type { AdmissionOf, HttpApi } from '../../http/index.ts'
import {
  demandReader,
  type RegistryView,
  type ServiceInstance,
  visibleTo,
} from '../registry-view/index.ts'
import {
  appOf,
  type InstanceInfo,
  instanceInfoOf,
  isByEureka,
  parseRegistration,
  serviceOf,
} from './instance-info.ts'
import { RecentChanges } from './recent-changes.ts'
import { eurekaStatusOf, overriding, ownStatus } from './status.ts'
import { xmlOf } from './xml.ts'

export interface EurekaDependencies {
  readonly app: FastifyInstance
  readonly api: HttpApi
  readonly view: RegistryView
  readonly clock: Clock
}

/** The Java client uses the first by default with Spring, the second without. */
const PREFIXES = ['/eureka', '/eureka/v2']

/**
 * The REST protocol of Eureka. A registration is a claim like all others, under a lease that the
 * client's heartbeats renew. Its client keeps no secret, so it belongs to the access token that made
 * it; others need rights to its key. The brake of the view is what Eureka calls self-preservation.
 */
export function serveEureka({ app, api, view, clock }: EurekaDependencies): void {
  const changes = new RecentChanges(view, clock)
  for (const prefix of PREFIXES) {
    api.addProtocol(app, prefix, (routes, admissionOf) => {
      addReads(routes, view, changes, admissionOf)
      addWrites(routes, view, admissionOf)
    })
  }
}

interface Params {
  readonly app: string
  readonly id: string
  readonly vip: string
}
const paramsOf = (request: FastifyRequest) => request.params as Params
const queryOf = (request: FastifyRequest) => request.query as Readonly<Record<string, unknown>>

function addReads(
  routes: FastifyInstance,
  view: RegistryView,
  changes: RecentChanges,
  admissionOf: AdmissionOf,
): void {
  /** The instances that the caller may see, in the form of Eureka. */
  const visible = (request: FastifyRequest) => {
    const { principal } = admissionOf(request)
    demandReader(principal)
    return allOf(view, principal)
  }
  const all = async (request: FastifyRequest, reply: FastifyReply) => {
    const infos = visible(request)
    return send(request, reply, 'applications', applications(infos, hashCode(infos)))
  }
  const selected =
    (matches: (info: InstanceInfo, params: Params) => boolean) =>
    async (request: FastifyRequest, reply: FastifyReply) => {
      const infos = visible(request).filter((info) => matches(info, paramsOf(request)))
      return send(request, reply, 'applications', applications(infos, hashCode(infos)))
    }
  const one =
    (matches: (info: InstanceInfo, params: Params) => boolean) =>
    async (request: FastifyRequest, reply: FastifyReply) => {
      const info = visible(request).find((each) => matches(each, paramsOf(request)))
      if (info === undefined) throw notRegistered(request.url)
      return send(request, reply, 'instance', info)
    }
  routes.get('/apps', all)
  routes.get('/apps/', all)
  routes.get('/apps/delta', async (request, reply) => {
    const infos = visible(request)
    const { principal } = admissionOf(request)
    const recent = [...changes].flatMap(({ action, instance }) =>
      visibleTo(principal, [instance]).flatMap((each) => instanceInfoOf(each, action) ?? []),
    )
    return send(request, reply, 'applications', applications(recent, hashCode(infos)))
  })
  routes.get('/apps/:app', async (request, reply) => {
    const name = appOf(paramsOf(request).app)
    const infos = visible(request).filter((info) => info['app'] === name)
    if (infos.length === 0) throw notRegistered(request.url)
    return send(request, reply, 'application', { name, instance: infos })
  })
  const isId = (info: InstanceInfo, { id }: Params) => info['instanceId'] === id
  routes.get(
    '/apps/:app/:id',
    one((info, params) => info['app'] === appOf(params.app) && isId(info, params)),
  )
  routes.get('/instances/:id', one(isId))
  const hasVip = (field: string) => (info: InstanceInfo, params: Params) =>
    String(info[field]).split(',').includes(params.vip)
  routes.get('/vips/:vip', selected(hasVip('vipAddress')))
  routes.get('/svips/:vip', selected(hasVip('secureVipAddress')))
}

function addWrites(routes: FastifyInstance, view: RegistryView, admissionOf: AdmissionOf): void {
  const on = (request: FastifyRequest) => new Registrations(admissionOf(request), view)
  routes.post('/apps/:app', async (request, reply) => {
    await on(request).register(paramsOf(request).app, request.body)
    return reply.code(204).send()
  })
  routes.put('/apps/:app/:id', async (request, reply) => {
    const { app, id } = paramsOf(request)
    const { status } = queryOf(request)
    await on(request).renew(app, id, status === undefined ? undefined : ownStatus(status))
    return reply.send('')
  })
  routes.delete('/apps/:app/:id', async (request, reply) => {
    const { app, id } = paramsOf(request)
    await on(request).end(app, id)
    return reply.send('')
  })
  routes.put('/apps/:app/:id/status', async (request, reply) => {
    const { app, id } = paramsOf(request)
    await on(request).amend(app, id, overriding(queryOf(request)['value']))
    return reply.send('')
  })
  routes.delete('/apps/:app/:id/status', async (request, reply) => {
    const { app, id } = paramsOf(request)
    await on(request).amend(app, id, { maintenance: false })
    return reply.send('')
  })
}

/** What one caller does with its registrations. */
class Registrations {
  readonly #admission: Admission
  readonly #view: RegistryView

  constructor(admission: Admission, view: RegistryView) {
    this.#admission = admission
    this.#view = view
  }

  /** Registers an instance, or describes it anew if the caller registered it before. */
  async register(app: string, body: unknown): Promise<void> {
    const { id, spec, ttl, status } = parseRegistration(body)
    const { store, principal } = this.#admission
    const { registry } = this.#view
    const { key, value: plain, labels } = registry.entry(serviceOf(app), id, spec)
    const value = registry.amended(plain, ownStatus(status))
    const claims = [{ key, value }]
    const wanted = { holder: principal.name, ttl, labels, claims, ifFree: true }
    if ((await store.grant(wanted)).outcome === 'granted') return
    const { lease, claim } = await this.#findOwn(app, id)
    await this.#renew(lease, app, id)
    await store.update({ lease, key, token: claim.token, value })
  }

  async renew(app: string, id: string, update: InstanceUpdate | undefined): Promise<void> {
    const { lease, claim } = await this.#findOwn(app, id)
    await this.#renew(lease, app, id)
    if (update !== undefined && this.#changes(app, id, update)) {
      await this.#update(lease, claim, update)
    }
  }

  async end(app: string, id: string): Promise<void> {
    const { lease } = await this.#findOwn(app, id)
    await this.#admission.store.revoke({ target: { lease }, why: 'cancelled by Eureka' })
  }

  async amend(app: string, id: string, update: InstanceUpdate): Promise<void> {
    const { lease, claim } = await this.#find(app, id)
    await this.#update(lease, claim, update)
  }

  async #renew(lease: LeaseId, app: string, id: string): Promise<void> {
    const { lost } = await this.#admission.store.renew([lease])
    if (lost.length > 0) throw notRegistered(`${app}/${id}`)
  }

  async #update(lease: LeaseId, { key, token, value }: Claim, update: InstanceUpdate) {
    const amended = this.#view.registry.amended(value, update)
    await this.#admission.store.update({ lease, key, token, value: amended })
  }

  /** Heartbeats repeat the status. Only a new one is written. */
  #changes(app: string, id: string, { status, note }: InstanceUpdate): boolean {
    const shown = this.#view.service(serviceOf(app))?.all.find((each) => each.id === id)
    if (shown === undefined || shown.status === 'maintenance') return false
    return eurekaStatusOf(shown.status, shown.note) !== eurekaStatusOf(status!, note)
  }

  /**
   * A registration that was made by Eureka. The lease of another one may carry locks and other
   * registrations: only its own client renews and ends it.
   */
  async #findOwn(app: string, id: string): Promise<{ lease: LeaseId; claim: Claim }> {
    const found = await this.#find(app, id)
    const details = this.#view.registry.details(found.claim, [])
    if (details !== undefined && isByEureka(details)) return found
    throw new LeaseholdError(
      'forbidden',
      `${show(`${app}/${id}`)} was not registered by Eureka: only its own client may renew, replace or end it. Use another instanceId`,
    )
  }

  /**
   * The registration. 404 makes a client register again. The plain id of a lease that another access
   * token made is good for what the rights of the caller allow.
   */
  async #find(app: string, id: string): Promise<{ lease: LeaseId; claim: Claim }> {
    const { claims } = await this.#admission.store.read({ key: servicesKey(serviceOf(app), id) })
    const [claim] = claims
    if (claim === undefined) throw notRegistered(`${app}/${id}`)
    const own = await this.#admission.grantedLease(claim.lease)
    return { lease: own ?? claim.lease, claim }
  }
}

function allOf(view: RegistryView, principal: Principal): InstanceInfo[] {
  const shown = (instances: readonly ServiceInstance[]) =>
    visibleTo(principal, instances).flatMap((each) => instanceInfoOf(each) ?? [])
  return view.services.flatMap((name) => shown(view.service(name)?.all ?? []))
}

function applications(infos: readonly InstanceInfo[], apps__hashcode: string) {
  const byApp = new Map<unknown, InstanceInfo[]>()
  for (const info of infos) {
    const known = byApp.get(info['app'])
    if (known === undefined) byApp.set(info['app'], [info])
    else known.push(info)
  }
  const application = [...byApp].map(([name, instance]) => ({ name, instance }))
  return { versions__delta: '1', apps__hashcode, application }
}

/** How many instances have each status: `DOWN_1_UP_3_`. Clients compare it with their own. */
function hashCode(infos: readonly InstanceInfo[]): string {
  const counts = new Map<string, number>()
  for (const { status } of infos) counts.set(status, (counts.get(status) ?? 0) + 1)
  return [...counts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([status, count]) => `${status}_${count}_`)
    .join('')
}

/** XML unless the caller asks for JSON, as in Eureka. */
function send(request: FastifyRequest, reply: FastifyReply, name: string, value: object) {
  if (request.headers.accept?.includes('json')) {
    return reply.type('application/json').send({ [name]: value })
  }
  return reply.type('application/xml').send(xmlOf(name, value))
}

function notRegistered(what: string): LeaseholdError {
  return new LeaseholdError('claim-not-found', `${show(what)} is not registered`)
}
