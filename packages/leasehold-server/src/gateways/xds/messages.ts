import protobuf from 'protobufjs/light.js'

/**
 * The messages of xDS v3 that this gateway uses, with the fields that it uses: the number and the
 * type of each. Enumerations are numbers.
 */
const MESSAGES: Readonly<Record<string, Readonly<Record<string, readonly [number, string]>>>> = {
  Any: { type_url: [1, 'string'], value: [2, 'bytes'] },
  UInt32Value: { value: [1, 'uint32'] },
  Status: { code: [1, 'int32'], message: [2, 'string'] },
  Locality: { region: [1, 'string'], zone: [2, 'string'], sub_zone: [3, 'string'] },
  Node: { id: [1, 'string'], locality: [4, 'Locality'] },
  DiscoveryRequest: {
    version_info: [1, 'string'],
    node: [2, 'Node'],
    resource_names: [3, 'repeated string'],
    type_url: [4, 'string'],
    response_nonce: [5, 'string'],
    error_detail: [6, 'Status'],
  },
  DiscoveryResponse: {
    version_info: [1, 'string'],
    resources: [2, 'repeated Any'],
    type_url: [4, 'string'],
    nonce: [5, 'string'],
  },

  Listener: { name: [1, 'string'], api_listener: [19, 'ApiListener'] },
  ApiListener: { api_listener: [1, 'Any'] },
  HttpConnectionManager: {
    stat_prefix: [2, 'string'],
    route_config: [4, 'RouteConfiguration'],
    http_filters: [5, 'repeated HttpFilter'],
  },
  HttpFilter: { name: [1, 'string'], typed_config: [4, 'Any'] },
  Router: {},
  RouteConfiguration: { name: [1, 'string'], virtual_hosts: [2, 'repeated VirtualHost'] },
  VirtualHost: {
    name: [1, 'string'],
    domains: [2, 'repeated string'],
    routes: [3, 'repeated Route'],
  },
  Route: { match: [1, 'RouteMatch'], route: [2, 'RouteAction'] },
  RouteMatch: { prefix: [1, 'string'] },
  RouteAction: { cluster: [1, 'string'] },

  Cluster: {
    name: [1, 'string'],
    type: [2, 'int32'],
    eds_cluster_config: [3, 'EdsClusterConfig'],
    lb_policy: [6, 'int32'],
    common_lb_config: [27, 'CommonLbConfig'],
  },
  EdsClusterConfig: { eds_config: [1, 'ConfigSource'], service_name: [2, 'string'] },
  ConfigSource: { ads: [3, 'Empty'], resource_api_version: [6, 'int32'] },
  CommonLbConfig: { locality_weighted_lb_config: [3, 'Empty'] },
  Empty: {},

  ClusterLoadAssignment: {
    cluster_name: [1, 'string'],
    endpoints: [2, 'repeated LocalityLbEndpoints'],
  },
  LocalityLbEndpoints: {
    locality: [1, 'Locality'],
    lb_endpoints: [2, 'repeated LbEndpoint'],
    load_balancing_weight: [3, 'UInt32Value'],
    priority: [5, 'uint32'],
  },
  LbEndpoint: { endpoint: [1, 'Endpoint'], load_balancing_weight: [4, 'UInt32Value'] },
  Endpoint: { address: [1, 'Address'] },
  Address: { socket_address: [1, 'SocketAddress'] },
  SocketAddress: { address: [2, 'string'], port_value: [3, 'uint32'] },
}

const root = new protobuf.Root()
for (const [name, fields] of Object.entries(MESSAGES)) {
  const type = new protobuf.Type(name)
  for (const [field, [id, kind]] of Object.entries(fields)) {
    const repeated = kind.startsWith('repeated ')
    type.add(
      repeated
        ? new protobuf.Field(field, id, kind.slice('repeated '.length), 'repeated')
        : new protobuf.Field(field, id, kind),
    )
  }
  root.add(type)
}

/** Encodes a message. */
export function encode(name: string, message: object): Buffer {
  return Buffer.from(root.lookupType(name).encode(message).finish())
}

/** What a client asks for, as far as it is used here. */
export interface DiscoveryRequest {
  readonly node?: { readonly locality?: { readonly zone?: string } | null } | null
  readonly resource_names: readonly string[]
  readonly type_url: string
  readonly error_detail?: { readonly message: string } | null
}

/** Throws if the bytes are not such a message. */
export function decodeRequest(bytes: Buffer): DiscoveryRequest {
  return root.lookupType('DiscoveryRequest').decode(bytes) as unknown as DiscoveryRequest
}
