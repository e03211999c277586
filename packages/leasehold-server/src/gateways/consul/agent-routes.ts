import { type Answer, type Call, ConsulError } from './answer.ts'

/** What the API says about this server. */
export interface Identity {
  readonly node: string
  readonly host: string
  readonly port: number
}

/** The version of Consul whose API this is. */
const VERSION = '1.16.1'

/** `/v1/agent/…`. */
export function agentRoute(identity: Identity, call: Call, [action]: readonly string[]): Answer {
  if (call.method === 'GET' && action === 'self') return { body: self(identity) }
  throw new ConsulError(
    501,
    `Leasehold does not have /v1/${call.path}: see its table of differences`,
  )
}

/** `/v1/status/…`. Every server of a store answers for all, so each names itself as the leader. */
export function statusRoute({ host, port }: Identity, [what]: readonly string[]): Answer {
  if (what === 'leader') return { body: `"${host}:${port}"`, type: 'application/json' }
  if (what === 'peers') return { body: [`${host}:${port}`] }
  throw new ConsulError(404, `Invalid URL path: not found: status/${what}`)
}

function self({ node, host, port }: Identity): object {
  const id = '00000000-0000-0000-0000-000000000000'
  return {
    Config: {
      Datacenter: 'dc1',
      PrimaryDatacenter: 'dc1',
      NodeName: node,
      NodeID: id,
      Revision: '',
      Server: true,
      Version: VERSION,
    },
    Member: { Name: node, Addr: host, Port: port, Tags: { dc: 'dc1', role: 'consul' }, Status: 1 },
    Meta: { 'leasehold-gateway': 'consul' },
  }
}
