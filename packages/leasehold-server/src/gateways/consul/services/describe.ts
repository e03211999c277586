import { isIPv4, isIPv6 } from 'node:net'
import type { Revision } from 'leasehold/port'
import type { Service, ShownCheck } from './catalog-entry.ts'
import type { TaggedAddresses } from './definition.ts'

/** The one node of the catalog: the server, for whatever is registered. */
export interface NodeInfo {
  readonly name: string
  readonly address: string
  readonly version: string
}

/** When a service or check was created and changed. */
export interface Indexes {
  readonly CreateIndex: Revision
  readonly ModifyIndex: Revision
}

export const NODE_ID = '00000000-0000-0000-0000-000000000000'
export const DATACENTER = 'dc1'
/** The node is as old as the store. */
const FIRST: Indexes = { CreateIndex: 1, ModifyIndex: 1 }
/** Consul shows no indexes in the answers of an agent. */
const NONE: Indexes = { CreateIndex: 0, ModifyIndex: 0 }
const CONNECT = { Proxy: { Mode: '', MeshGateway: {}, Expose: {} }, Connect: {} }

/** The node in answers of the catalog and of health. */
export function nodeAnswer(node: NodeInfo): object {
  const { Meta, ...rest } = nodeFields(node)
  return { ...rest, Meta, ...FIRST }
}

/** A service in `agent/services`. */
export function agentService(service: Service): object {
  const { id, name, tags, meta, port, address, weights, enableTagOverride } = service
  return {
    ...{ ID: id, Service: name, Tags: tags, Meta: meta, Port: port, Address: address },
    ...taggedAddresses(service),
    ...{ Weights: weights, EnableTagOverride: enableTagOverride, Datacenter: DATACENTER },
  }
}

/** A service in answers of health, and of the catalog for a node. */
export function nodeService(service: Service, indexes: Indexes): object {
  const { id, name, tags, port, address, weights, enableTagOverride } = service
  return {
    ...{ ID: id, Service: name, Tags: tags, Address: address },
    ...taggedAddresses(service),
    Meta: metaAnswer(service),
    ...(port !== 0 && { Port: port }),
    ...{ Weights: weights, EnableTagOverride: enableTagOverride },
    ...{ ...CONNECT, PeerName: '' },
    ...indexes,
  }
}

/** A service in `catalog/service`. */
export function serviceNode(node: NodeInfo, service: Service, indexes: Indexes): object {
  const { id, name, tags, port, address, weights, enableTagOverride } = service
  const { Meta, ...rest } = nodeFields(node)
  const { TaggedAddresses } = taggedAddresses(service)
  return {
    ...{ ...rest, NodeMeta: Meta, ServiceKind: '' },
    ...{ ServiceID: id, ServiceName: name, ServiceTags: tags, ServiceAddress: address },
    ...(TaggedAddresses && { ServiceTaggedAddresses: TaggedAddresses }),
    ...{ ServiceWeights: weights, ServiceMeta: service.meta, ServicePort: port },
    ...{ ServiceSocketPath: '', ServiceEnableTagOverride: enableTagOverride },
    ...{ ServiceProxy: CONNECT.Proxy, ServiceConnect: CONNECT.Connect, ServiceLocality: null },
    ...indexes,
  }
}

/** A check. `service` is `undefined` for one of the node. */
export function checkAnswer(
  node: NodeInfo,
  check: ShownCheck,
  service: Service | undefined,
  indexes = NONE,
): object {
  const { id, name, status, notes, output, type, interval, timeout } = check
  return {
    ...{ Node: node.name, CheckID: id, Name: name, Status: status, Notes: notes, Output: output },
    ...{ ServiceID: service?.id ?? '', ServiceName: service?.name ?? '' },
    ...{ ServiceTags: service?.tags ?? [], Type: type, Interval: interval, Timeout: timeout },
    ...{ ExposedPort: 0, Definition: {} },
    ...indexes,
  }
}

/** The check of the node that is always there. */
export function serfHealth(node: NodeInfo): object {
  const check: ShownCheck = {
    ...{ id: 'serfHealth', name: 'Serf Health Status', status: 'passing', type: '', notes: '' },
    ...{ output: 'Agent alive and reachable', interval: '', timeout: '' },
  }
  return checkAnswer(node, check, undefined, FIRST)
}

/** An answer of `agent/health`, which describes checks with other fields. */
export function agentHealthCheck(
  node: NodeInfo,
  check: ShownCheck,
  service: Service | undefined,
): object {
  const { Interval, Timeout, ...rest } = checkAnswer(node, check, service) as Record<
    string,
    unknown
  >
  const Definition = {
    ...{ Interval: '0s', Timeout: '0s', DeregisterCriticalServiceAfter: '0s', HTTP: '' },
    ...{ Header: null, Method: '', Body: '', TLSServerName: '', TLSSkipVerify: false },
    ...{ TCP: '', UDP: '', GRPC: '', OSService: '', GRPCUseTLS: false },
  }
  const ServiceTags = service !== undefined && service.tags.length > 0 ? service.tags : null
  return { ...rest, Type: '', ServiceTags, Definition }
}

function nodeFields({ name, address, version }: NodeInfo) {
  const family = isIPv6(address) ? 'ipv6' : 'ipv4'
  return {
    ...{ ID: NODE_ID, Node: name, Address: address, Datacenter: DATACENTER },
    TaggedAddresses: {
      ...{ lan: address, [`lan_${family}`]: address },
      ...{ wan: address, [`wan_${family}`]: address },
    },
    Meta: { 'consul-network-segment': '', 'consul-version': version },
  }
}

/** Health and nodes show no metadata as `null`; others show it as an empty object. */
function metaAnswer({ meta }: Service): object | null {
  return Object.keys(meta).length === 0 ? null : meta
}

/** An address that is an IP address also stands for the networks that Consul knows. */
function taggedAddresses({ taggedAddresses: given, address, port }: Service): {
  readonly TaggedAddresses?: TaggedAddresses
} {
  const own = { Address: address, Port: port }
  const family = isIPv4(address) ? 'ipv4' : isIPv6(address) ? 'ipv6' : undefined
  const all = { ...(family && { [`lan_${family}`]: own, [`wan_${family}`]: own }), ...given }
  return Object.keys(all).length === 0 ? {} : { TaggedAddresses: all }
}
