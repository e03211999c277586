import type { ServiceInstance } from '../registry-view/index.ts'
import { encode } from './messages.ts'

const TYPES = 'type.googleapis.com/'
export const LISTENER = `${TYPES}envoy.config.listener.v3.Listener`
export const CLUSTER = `${TYPES}envoy.config.cluster.v3.Cluster`
export const ASSIGNMENT = `${TYPES}envoy.config.endpoint.v3.ClusterLoadAssignment`
const CONNECTION_MANAGER = `${TYPES}envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager`
const ROUTER = `${TYPES}envoy.extensions.filters.http.router.v3.Router`

const EDS = 3
const V3 = 2
/** The weight of the heaviest instance. Others are in proportion. */
const WEIGHT_MAX = 1000

/** For gRPC: all calls to `xds:///name` go to the cluster of this name. */
export function listenerOf(name: string): Buffer {
  const route = { match: { prefix: '' }, route: { cluster: name } }
  const manager = encode('HttpConnectionManager', {
    stat_prefix: name,
    route_config: { name, virtual_hosts: [{ name, domains: ['*'], routes: [route] }] },
    http_filters: [
      { name: 'router', typed_config: { type_url: ROUTER, value: encode('Router', {}) } },
    ],
  })
  const api_listener = { api_listener: { type_url: CONNECTION_MANAGER, value: manager } }
  return encode('Listener', { name, api_listener })
}

export function clusterOf(name: string): Buffer {
  return encode('Cluster', {
    name,
    type: EDS,
    eds_cluster_config: {
      eds_config: { ads: {}, resource_api_version: V3 },
      service_name: name,
    },
    common_lb_config: { locality_weighted_lb_config: {} },
  })
}

interface Weight {
  readonly value: number
}

export interface Assignment {
  readonly cluster_name: string
  readonly endpoints: readonly {
    readonly locality: { readonly zone: string; readonly sub_zone: string }
    readonly lb_endpoints: readonly object[]
    readonly load_balancing_weight: Weight
    readonly priority: number
  }[]
}

/**
 * The instances that a client balances over. A client that says its zone uses the instances there
 * first, and the others if none of these works.
 *
 * gRPC balances by the weights of localities alone, and evenly within one. So instances of a zone
 * with different weights are different localities.
 */
export function assignmentOf(
  name: string,
  instances: readonly ServiceInstance[],
  ownZone: string,
): Assignment {
  const usable = usableIn(instances)
  const heaviest = usable.reduce((most, { weight }) => Math.max(most, weight), 0)
  const groups = new Map<string, { zone: string; weight: number; members: ServiceInstance[] }>()
  for (const instance of usable) {
    const { zone = '' } = instance
    const weight = Math.max(1, Math.round((instance.weight / heaviest) * WEIGHT_MAX))
    const key = `${weight} ${zone}`
    const group = groups.get(key) ?? { zone, weight, members: [] }
    group.members.push(instance)
    groups.set(key, group)
  }
  const prefersOwn = ownZone !== '' && usable.some(({ zone }) => zone === ownZone)
  const endpoints = [...groups.values()].map(({ zone, weight, members }) => ({
    locality: { zone, sub_zone: `weight-${weight}` },
    lb_endpoints: members.map((member) => lbEndpointOf(member, weight)),
    load_balancing_weight: { value: weight * members.length },
    priority: prefersOwn && zone !== ownZone ? 1 : 0,
  }))
  return { cluster_name: name, endpoints }
}

export function encodeAssignment(assignment: Assignment): Buffer {
  return encode('ClusterLoadAssignment', assignment)
}

/** In the JSON of protobuf: a wrapped number is a number. */
export function assignmentJson(assignment: Assignment): object {
  const unwrapped = (key: string, value: unknown) =>
    key === 'load_balancing_weight' ? (value as Weight).value : value
  return { '@type': ASSIGNMENT, ...JSON.parse(JSON.stringify(assignment, unwrapped)) }
}

/** Clients refuse a whole assignment with a host name, a missing port or an address twice. */
function usableIn(instances: readonly ServiceInstance[]): ServiceInstance[] {
  const seen = new Set<string>()
  return instances.filter(({ endpoint, weight }) => {
    if (endpoint === undefined || endpoint.family === 0 || endpoint.port === undefined) return false
    const address = `${endpoint.host} ${endpoint.port}`
    if (weight === 0 || seen.has(address)) return false
    seen.add(address)
    return true
  })
}

function lbEndpointOf({ endpoint }: ServiceInstance, weight: number): object {
  const { host: address, port: port_value } = endpoint!
  return {
    endpoint: { address: { socket_address: { address, port_value } } },
    load_balancing_weight: { value: weight },
  }
}
