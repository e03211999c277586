import type { Answer, Call } from './answer.ts'
import { refuseMethod, unknownPath } from './refusals.ts'
import { type AgentParts, agentServiceRoute, DATACENTER, NODE_ID } from './services/index.ts'

/** What the API says about this server. */
export interface Identity {
  readonly node: string
  readonly host: string
  readonly port: number
}

/** The version of Consul whose API this is. */
export const VERSION = '1.16.1'

/** `/v1/agent/…`. */
export async function agentRoute(
  parts: AgentParts,
  identity: Identity,
  call: Call,
  path: readonly string[],
): Promise<Answer> {
  const answer = await agentServiceRoute(parts, call, path)
  if (answer !== undefined) return answer
  const [what] = path
  if (what !== 'self' && what !== 'members') throw unknownPath(call)
  refuseMethod(call, 'GET')
  return { body: what === 'self' ? self(identity) : [member(identity)] }
}

/** `/v1/status/…`. Every server of a store answers for all, so each names itself as the leader. */
export function statusRoute(
  { host, port }: Identity,
  call: Call,
  [what]: readonly string[],
): Answer {
  if (what !== 'leader' && what !== 'peers') throw unknownPath(call)
  refuseMethod(call, 'GET')
  if (what === 'peers') return { body: [`${host}:${port}`] }
  return { body: `"${host}:${port}"`, type: 'application/json' }
}

function self(identity: Identity): object {
  return {
    Config: {
      Datacenter: DATACENTER,
      PrimaryDatacenter: DATACENTER,
      NodeName: identity.node,
      NodeID: NODE_ID,
      Revision: '',
      Server: true,
      Version: VERSION,
    },
    Member: member(identity),
    Meta: { 'leasehold-gateway': 'consul' },
  }
}

function member({ node, host, port }: Identity): object {
  const Tags = { dc: DATACENTER, role: 'consul' }
  return { Name: node, Addr: host, Port: port, Tags, Status: 1 }
}
