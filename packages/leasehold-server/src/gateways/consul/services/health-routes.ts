import { type Answer, type Call, ConsulError } from '../answer.ts'
import { parseBoolean, refuseFilter, refuseMethod, unknownPath } from '../refusals.ts'
import type { Catalog, Snapshot } from './catalog.ts'
import { worstOf } from './catalog-entry.ts'
import { hasTags } from './catalog-routes.ts'
import { nodeAnswer, nodeService } from './describe.ts'

const MISSING: Readonly<Record<string, string>> = {
  service: 'Missing service name',
  checks: 'Missing service name',
  node: 'Missing node name',
  state: 'Missing check state',
}

/** `/v1/health/…`. */
export async function healthRoute(
  catalog: Catalog,
  call: Call,
  [what = '', name = '']: readonly string[],
): Promise<Answer> {
  const missing = Object.hasOwn(MISSING, what) ? MISSING[what] : undefined
  if (missing === undefined) throw unknownPath(call)
  refuseMethod(call, 'GET')
  if (name === '') throw new ConsulError(400, missing)
  refuseFilter(call)
  switch (what) {
    case 'service':
      return serviceHealth(catalog, call, name)
    case 'checks':
      return catalog.answer(call, name, ({ services }) =>
        services.flatMap((service) => catalog.serviceChecks(service)),
      )
    case 'node':
      return catalog.answer(call, undefined, (snapshot) =>
        name === catalog.node.name ? allChecks(catalog, snapshot) : [],
      )
    default:
      return catalog.answer(call, undefined, (snapshot) => {
        const checks = allChecks(catalog, snapshot)
        return name === 'any' ? checks : checks.filter(({ Status }) => Status === name)
      })
  }
}

async function serviceHealth(catalog: Catalog, call: Call, name: string): Promise<Answer> {
  const { query } = call
  const onlyPassing = parseBoolean(query, 'passing')
  const answer = await catalog.answer(call, name, ({ services, nodeChecks }) => {
    const isNodePassing = nodeChecks.every(({ status }) => status === 'passing')
    const Node = nodeAnswer(catalog.node)
    const ofNode = catalog.nodeChecks(nodeChecks)
    return services
      .filter(hasTags(query))
      .filter(({ checks }) => !onlyPassing || (isNodePassing && worstOf(checks) === 'passing'))
      .map((service) => ({
        Node,
        Service: nodeService(service, catalog.indexes(service)),
        Checks: [...ofNode, ...catalog.serviceChecks(service)],
      }))
  })
  if (onlyPassing !== undefined) return answer
  return { ...answer, status: 400, body: 'Invalid value for ?passing' }
}

type CheckAnswer = Readonly<Record<'CheckID' | 'Status', string>>

function allChecks(catalog: Catalog, { services, nodeChecks }: Snapshot): CheckAnswer[] {
  const checks = [
    ...catalog.nodeChecks(nodeChecks),
    ...services.flatMap((service) => catalog.serviceChecks(service)),
  ] as CheckAnswer[]
  return checks.sort((a, b) => (a.CheckID < b.CheckID ? -1 : 1))
}
