import { invalid, show } from '../../../port/index.ts'

export interface Server {
  readonly host: string
  readonly port: number
}

/** Parses a string such as `'zk1:2181,zk2:2181'`. */
export function serversOf(servers: string | readonly Server[]): readonly Server[] {
  const list = typeof servers === 'string' ? servers.split(',').map(serverOf) : servers
  if (Array.isArray(list) && list.length > 0) return list as Server[]
  throw invalid(`servers is ${show(servers)}: name the ensemble, such as 'zk1:2181,zk2:2181'`)
}

function serverOf(address: string): Server {
  const match = /^\s*(?:\[(.+)\]|([^:/\s]+))(?::(\d+))?\s*$/.exec(address)
  if (!match) throw invalid(`servers has ${show(address)}: write 'host:port', such as 'zk1:2181'`)
  return { host: match[1] ?? match[2]!, port: match[3] ? Number(match[3]) : 2181 }
}
