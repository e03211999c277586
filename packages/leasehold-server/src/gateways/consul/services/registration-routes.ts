import { type Answer, type Call, ConsulError, flag, jsonBody } from '../answer.ts'
import {
  parseBoolean,
  refuseFilter,
  refuseMethod,
  refuseMethodOfChange,
  unknownPath,
} from '../refusals.ts'
import type { Catalog } from './catalog.ts'
import { maintenanceId, type Service, type ShownCheck, worstOf } from './catalog-entry.ts'
import { STATUSES, type StoredCheck, textOf } from './check.ts'
import { parseCheckRegistration, parseService } from './definition.ts'
import { agentHealthCheck, agentService, checkAnswer } from './describe.ts'
import { NODE_MAINTENANCE, type Services } from './services.ts'

export interface AgentParts {
  readonly services: Services
  readonly catalog: Catalog
}

const REPORTS = { pass: 'passing', warn: 'warning', fail: 'critical' } as const
const HEALTH_CODES = { passing: 200, warning: 429, critical: 503, maintenance: 503 } as const
const DONE: Answer = { body: '' }

/** The parts of `/v1/agent/…` that are about services and checks; `undefined` for others. */
export async function agentServiceRoute(
  parts: AgentParts,
  call: Call,
  [what, ...rest]: readonly string[],
): Promise<Answer | undefined> {
  const { services, catalog } = parts
  switch (what) {
    case 'services':
      refuseMethod(call, 'GET')
      refuseFilter(call)
      return { body: byId(await services.list(), agentService) }
    case 'checks': {
      refuseMethod(call, 'GET')
      refuseFilter(call)
      const describe = (check: ShownCheck) => checkAnswer(catalog.node, check, undefined)
      const ofServices = (await services.list()).flatMap((service) =>
        service.checks.map((each) => [each.id, checkAnswer(catalog.node, each, service)]),
      )
      const ofNode = byId((await services.nodeChecks()) as readonly ShownCheck[], describe)
      return { body: { ...ofNode, ...Object.fromEntries(ofServices) } }
    }
    case 'service':
      return serviceRoute(services, call, rest)
    case 'check':
      return checkRoute(services, call, rest)
    case 'maintenance':
      refuseMethod(call, 'PUT')
      await services.maintainNode(maintenanceIn(call))
      return DONE
    case 'health':
      return healthRoute(parts, call, rest)
    default:
      return undefined
  }
}

async function serviceRoute(
  services: Services,
  call: Call,
  [action = '', ...rest]: readonly string[],
): Promise<Answer> {
  const id = rest.join('/')
  if (action === 'register' || action === 'deregister' || action === 'maintenance') {
    if (action === 'deregister') refuseMethodOfChange(call)
    else refuseMethod(call, 'PUT')
    if (action === 'register') {
      await services.register(parseService(call), flag(call.query, 'replace-existing-checks'))
    } else if (action === 'deregister') await services.deregister(id)
    else {
      if (id === '') throw new ConsulError(400, 'Missing service ID')
      await services.maintain(id, maintenanceIn(call))
    }
    return DONE
  }
  refuseMethod(call, 'GET')
  const wanted = [action, ...rest].join('/')
  const service = await services.byId(wanted)
  if (service === undefined) throw new ConsulError(404, `unknown service ID: ${wanted}`)
  return { body: agentService(service) }
}

async function checkRoute(
  services: Services,
  call: Call,
  [action = '', ...rest]: readonly string[],
): Promise<Answer> {
  if (action === 'register' || action === 'update') refuseMethod(call, 'PUT')
  else refuseMethodOfChange(call)
  const id = rest.join('/')
  if (action === 'register') {
    const { check, serviceId } = parseCheckRegistration(call)
    await services.addCheck(check, serviceId)
  } else if (action === 'deregister') await services.removeCheck(id)
  else if (action === 'update') {
    const { status, output } = jsonBody(call)
    if (!STATUSES.includes(status)) {
      throw new ConsulError(400, `Invalid check status: '${textOf(status)}'`)
    }
    await services.report(id, status as StoredCheck['status'], textOf(output))
  } else if (Object.hasOwn(REPORTS, action)) {
    const status = REPORTS[action as keyof typeof REPORTS]
    await services.report(id, status, call.query.get('note') ?? '')
  } else throw unknownPath(call)
  return DONE
}

/** `agent/health/service/id/…` and `agent/health/service/name/…`: the status is also the HTTP status. */
async function healthRoute(
  { services, catalog }: AgentParts,
  call: Call,
  [kind, by, ...rest]: readonly string[],
): Promise<Answer> {
  if (kind !== 'service' || (by !== 'id' && by !== 'name')) throw unknownPath(call)
  refuseMethod(call, 'GET')
  const isId = by === 'id'
  const wanted = rest.join('/')
  if (wanted === '') throw new ConsulError(500, isId ? 'Missing serviceID' : 'Missing service Name')
  const one = isId ? await services.byId(wanted) : undefined
  const found = isId ? [one].flatMap((each) => each ?? []) : await services.list(wanted)
  const nodeChecks = (await services.nodeChecks()) as readonly ShownCheck[]
  const infos = found.map((service) => ({
    AggregatedStatus: aggregated(service, nodeChecks),
    Service: agentService(service),
    Checks: [
      ...service.checks.map((each) => agentHealthCheck(catalog.node, each, service)),
      ...nodeChecks.map((each) => agentHealthCheck(catalog.node, each, undefined)),
    ],
  }))
  const missing = isId ? `ServiceId ${wanted} not found` : `ServiceName ${wanted} Not Found`
  const worst = infos
    .map((info) => info.AggregatedStatus)
    .sort((a, b) => HEALTH_CODES[b] - HEALTH_CODES[a])[0]
  const status = worst === undefined ? 404 : HEALTH_CODES[worst]
  const reason = worst ?? missing
  if (call.query.get('format') === 'text') {
    return { status, reason, body: reason, type: 'text/plain' }
  }
  const none = { AggregatedStatus: 'critical', Service: null, Checks: null }
  return { status, reason, body: isId ? (infos[0] ?? none) : infos }
}

function aggregated(
  service: Service,
  nodeChecks: readonly ShownCheck[],
): keyof typeof HEALTH_CODES {
  const checks = [...service.checks, ...nodeChecks]
  const isMaintained = checks.some(
    ({ id }) => id === maintenanceId(service.id) || id === NODE_MAINTENANCE,
  )
  return isMaintained ? 'maintenance' : worstOf(checks)
}

/** The reason for maintenance; `undefined` if it is over. */
function maintenanceIn({ query }: Call): string | undefined {
  if (!query.has('enable')) throw new ConsulError(400, 'Missing value for enable')
  const given = query.get('enable')
  const isEnabled = given === '' ? undefined : parseBoolean(query, 'enable')
  if (isEnabled === undefined) throw new ConsulError(400, `Invalid value for enable: "${given}"`)
  return isEnabled ? (query.get('reason') ?? '') : undefined
}

function byId<One extends { readonly id: string }>(
  all: readonly One[],
  describe: (one: One) => object,
): Record<string, object> {
  return Object.fromEntries(all.map((one) => [one.id, describe(one)]))
}
