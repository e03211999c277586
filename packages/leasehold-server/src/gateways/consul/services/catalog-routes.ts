import { type Answer, type Call, ConsulError } from '../answer.ts'
import { refuseFilter, refuseMethod, unknownPath } from '../refusals.ts'
import type { Catalog } from './catalog.ts'
import type { Service } from './catalog-entry.ts'
import { DATACENTER, nodeAnswer, nodeService, serviceNode } from './describe.ts'

/** `/v1/catalog/…`. */
export async function catalogRoute(
  catalog: Catalog,
  call: Call,
  [what, name = '']: readonly string[],
): Promise<Answer> {
  if (what === 'register' || what === 'deregister') {
    refuseMethod(call, 'PUT')
    throw new ConsulError(
      501,
      `Leasehold does not have /v1/catalog/${what}: use /v1/agent/service/${what}`,
    )
  }
  refuseMethod(call, 'GET')
  refuseFilter(call)
  const { node } = catalog
  const describe = (service: Service) => nodeService(service, catalog.indexes(service))
  const isNode = name === node.name
  switch (what) {
    case 'datacenters':
      return { body: [DATACENTER] }
    case 'nodes':
      return catalog.answer(call, undefined, () => [nodeAnswer(node)])
    case 'services':
      return catalog.answer(call, undefined, ({ services }) => tagsByName(services))
    case 'service':
      if (name === '') throw new ConsulError(400, 'Missing service name')
      return catalog.answer(call, name, ({ services }) =>
        services
          .filter(hasTags(call.query))
          .map((service) => serviceNode(node, service, catalog.indexes(service))),
      )
    case 'node':
      if (name === '') throw new ConsulError(400, 'Missing node name')
      return catalog.answer(call, undefined, ({ services }) => {
        if (!isNode) return null
        const described = services.map((service) => [service.id, describe(service)])
        return { Node: nodeAnswer(node), Services: Object.fromEntries(described) }
      })
    case 'node-services':
      if (name === '') throw new ConsulError(400, 'Missing node name')
      return catalog.answer(call, undefined, ({ services }) =>
        isNode
          ? { Node: nodeAnswer(node), Services: services.map(describe) }
          : { Node: null, Services: null },
      )
    default:
      throw unknownPath(call)
  }
}

/** Selects the services that have all tags of the query. */
export function hasTags(query: URLSearchParams): (service: Service) => boolean {
  const wanted = query.getAll('tag')
  return ({ tags }) => wanted.every((tag) => tags.includes(tag))
}

function tagsByName(services: readonly Service[]): Record<string, string[]> {
  const found = new Map<string, Set<string>>()
  for (const { name, tags } of services) {
    const known = found.get(name) ?? new Set()
    for (const tag of tags) known.add(tag)
    found.set(name, known)
  }
  return Object.fromEntries([...found].map(([name, tags]) => [name, [...tags]]))
}
