/** A key that a recipe or the server keeps for itself, and what it belongs to. */
export interface InternalKey {
  /** What it belongs to: `election scheduler`. */
  readonly owner: string
  /** What the key is for. */
  readonly purpose: string
  /** The view of the owner, if there is one. */
  readonly href?: string | undefined
  /** Its place in the tree of internal keys, below its owner. */
  readonly path: string
}

interface Rule {
  readonly shape: RegExp
  /** The internal key of this shape; `parts` are the groups of the shape. */
  readonly read: (key: string, parts: readonly string[]) => InternalKey
}

const ELECTION_PARTS: Readonly<Record<string, string>> = {
  line: 'the candidates',
  successor: 'the named successor',
}
const POOL_PARTS: Readonly<Record<string, string>> = {
  definition: 'the definition',
  line: 'the queue',
  books: 'usage records',
  notice: 'a permit that was asked back',
  r: 'a resource',
}
const SESSION_PARTS: Readonly<Record<string, string>> = {
  id: 'the session',
  user: 'the session in the list of its user',
}
const ONCE_PARTS: Readonly<Record<string, string>> = {
  run: 'the process that runs it',
  done: 'the stored result',
}
const CRON_PARTS: Readonly<Record<string, string>> = {
  run: 'the process that runs it',
  position: 'the last time that was run',
  done: 'a finished run',
}
const CONSUL_PARTS: Readonly<Record<string, string>> = {
  session: 'a session',
  delay: 'the lock-delay of a key',
  ttl: 'a check that its service reports in time',
  'node-checks': 'the checks of the node',
}
const CACHE_PARTS: Readonly<Record<string, string>> = {
  load: 'the process that loads it',
  value: 'the value',
}

/** The checker's place is a name with a space, which no service and no instance can have. */
const CHECKER = 'active checker'

/** By the first part of the key. A key of another shape is a user's. */
const RULES: Readonly<Record<string, Rule>> = {
  election: {
    shape: /^election\/(.+)\/(line|successor)$/,
    read: (path, [name, part]) => ({
      ...{ path, owner: `election ${name}`, purpose: ELECTION_PARTS[part!]!, href: '#/elections' },
    }),
  },
  pool: {
    shape: /^pool\/([^/]+)\/(?:(definition|line|books)|(notice|r)\/.+)$/,
    read: (path, [name, one, many]) => ({
      ...{ path, owner: `pool ${name}`, purpose: POOL_PARTS[one ?? many!]! },
      href: `#/pools/${encodeURIComponent(name!)}`,
    }),
  },
  services: {
    shape: /^services\/([^/]+)\/([^/]+)$/,
    read: (path, [service, id]) => instancePart(path, service!, id!, 'the registration'),
  },
  health: {
    shape: /^health\/([^/]+)\/([^/]+)$/,
    read: (_key, [service, id]) =>
      instancePart(`services/${service}/${id}/health`, service!, id!, 'the result of its checks'),
  },
  checkers: {
    shape: /^checkers\/(?:all|of\/([^/]+))$/,
    read: (_key, [service]) => ({
      path: service === undefined ? `services/${CHECKER}` : `services/${service}/${CHECKER}`,
      owner: service === undefined ? 'all services' : `service ${service}`,
      purpose: 'the process that runs the health checks',
      href: service === undefined ? '#/services' : `#/services/${encodeURIComponent(service)}`,
    }),
  },
  nodes: {
    shape: /^nodes\/([^/]+)$/,
    read: (path, [node]) => ({ path, owner: `node ${node}`, purpose: 'the registration' }),
  },
  adaptive: {
    shape: /^adaptive\/([^/]+)$/,
    read: (path, [kind]) => ({
      ...{ path, owner: `adaptive ttl of ${decoded(kind!)}`, purpose: 'the learnt hold times' },
      href: '#/pools',
    }),
  },
  session: {
    shape: /^session\/([^/]+)\/(id|user(?=\/[^/]+\/))\/(?:[^/]+\/)?([^/]+)$/,
    read: (key, [table, part, ref]) => ({
      path: part === 'id' ? key : `session/${table}/id/${ref}/user`,
      owner: `sessions ${table}`,
      purpose: SESSION_PARTS[part!]!,
      href: '#/sessions',
    }),
  },
  once: {
    shape: /^once\/(run|done)\/(.+)$/,
    read: (_key, [part, name]) => ({
      ...{ path: `once/${name}/${part}`, owner: `once ${name}`, purpose: ONCE_PARTS[part!]! },
    }),
  },
  cron: {
    shape: /^cron\/([^/]+)\/(run|position|done(?=\/))(?:\/[^/]+)?$/,
    read: (path, [name, part]) => ({ path, owner: `cron ${name}`, purpose: CRON_PARTS[part!]! }),
  },
  cache: {
    shape: /^cache\/([^/]+)\/([^/]+)\/(load|value)$/,
    read: (path, [cache, entry, part]) => ({
      ...{ path, owner: `${decoded(entry!)} in cache ${cache}`, purpose: CACHE_PARTS[part!]! },
    }),
  },
  agents: {
    shape: /^agents\/asks\/[^/]+\/[^/]+$/,
    read: (path) => ({
      ...{ path, owner: 'the agents', purpose: 'a request to give a hold back', href: '#/agents' },
    }),
  },
  // The entries of the key-value store, `consul/kv/…`, have names that users chose.
  consul: {
    shape: /^consul\/(?:(session|delay|ttl)\/.+|(node-checks))$/,
    read: (path, [one, other]) => ({
      ...{ path, owner: 'the Consul API', purpose: CONSUL_PARTS[one ?? other!]! },
    }),
  },
  leasehold: {
    shape: /^leasehold\/./,
    read: (path) => ({ path, owner: 'this server', purpose: 'internal to the server' }),
  },
}

/** What an internal key belongs to; `undefined` for a user's key. */
export function internalKey(key: string): InternalKey | undefined {
  const end = key.indexOf('/')
  const first = key.slice(0, end)
  if (end < 0 || !Object.hasOwn(RULES, first)) return undefined
  const rule = RULES[first]!
  const parts = rule.shape.exec(key)
  return parts === null ? undefined : rule.read(key, parts.slice(1))
}

function instancePart(path: string, service: string, id: string, purpose: string): InternalKey {
  const href = `#/services/${encodeURIComponent(service)}`
  return { path, owner: `instance ${id} of ${service}`, purpose, href }
}

/** A part that may have been encoded; as it is if it was not. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
