import { GROUP, RESOURCE, VERSION } from './status.ts'

const NOTHING = { serverAddressByClientCIDRs: [] }
const GROUP_VERSION = { groupVersion: VERSION, version: 'v1' }
const API_GROUP = {
  name: GROUP,
  versions: [GROUP_VERSION],
  preferredVersion: GROUP_VERSION,
}
const VERBS = ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch']

/** What a client reads to find out what a server has, by path. */
export const DISCOVERY: Readonly<Record<string, unknown>> = {
  '/api': { kind: 'APIVersions', versions: ['v1'], ...NOTHING },
  '/api/v1': { kind: 'APIResourceList', groupVersion: 'v1', resources: [] },
  '/apis': { kind: 'APIGroupList', apiVersion: 'v1', groups: [API_GROUP] },
  [`/apis/${GROUP}`]: { kind: 'APIGroup', apiVersion: 'v1', ...API_GROUP },
  [`/apis/${VERSION}`]: {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: VERSION,
    resources: [
      { name: RESOURCE, singularName: 'lease', namespaced: true, kind: 'Lease', verbs: VERBS },
    ],
  },
  // The version whose Lease API this is. Clients compare it with their own.
  '/version': { major: '1', minor: '32', gitVersion: 'v1.32.0+leasehold', platform: 'leasehold' },
}

/**
 * An OpenAPI document without schemas. kubectl asks for it before it creates or applies, and checks
 * an object that it has no schema for not at all: this server checks.
 */
export const OPEN_API_V2 = {
  swagger: '2.0',
  info: { title: 'Leasehold', version: 'v1' },
  paths: {},
}
/** The same in the form that kubectl asks for. The first field is `swagger`. */
export const OPEN_API_V2_PROTOBUF = Buffer.from([0x0a, 0x03, ...Buffer.from('2.0')])
export const PROTOBUF_TYPE = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf'
