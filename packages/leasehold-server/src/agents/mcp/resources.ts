import { type McpServer, ResourceTemplate } from '@modelcontextprotocol/server'
import { invalid, show, type Watch } from 'leasehold/port'
import type { AgentSession, SessionOf } from '../agent-session.ts'
import { refuse } from './answers.ts'

/** What an agent host can read and follow, for a model or for a person who looks at its screen. */
export const HOLDS_URI = 'leasehold://holds'
export const AGENTS_URI = 'leasehold://agents'
export const KEYS_URI = 'leasehold://keys'
const KEYS_TEMPLATE = `${KEYS_URI}/{+prefix}`
const MIME = 'application/json'

export function addResources(server: McpServer, sessionOf: SessionOf): void {
  const of = async (uri: URL, read: (session: AgentSession) => unknown, reads = true) => {
    try {
      const text = JSON.stringify(await read(await sessionOf({ reads })), undefined, 2)
      return { contents: [{ uri: uri.href, mimeType: MIME, text }] }
    } catch (error) {
      return refuse(error)
    }
  }
  server.registerResource(
    'holds',
    HOLDS_URI,
    {
      title: 'What I hold',
      description: 'What this connection holds, waits for, or has lost, and the notices for it.',
      mimeType: MIME,
    },
    (uri) => of(uri, ({ holds }) => holds.overview(), false),
  )
  server.registerResource(
    'agents',
    AGENTS_URI,
    {
      title: 'The fleet',
      description: 'The agents: what they do, hold and wait for.',
      mimeType: MIME,
    },
    (uri) => of(uri, async ({ fleet }) => (await fleet.agents()).agents),
  )
  server.registerResource(
    'keys',
    KEYS_URI,
    { title: 'All keys', description: 'All keys with their holders and queues.', mimeType: MIME },
    (uri) => of(uri, ({ fleet }) => fleet.keys('')),
  )
  server.registerResource(
    'keys-by-prefix',
    new ResourceTemplate(KEYS_TEMPLATE, { list: undefined }),
    {
      title: 'Keys by prefix',
      description: 'The keys that begin with this prefix, with their holders and queues.',
      mimeType: MIME,
    },
    (uri) => of(uri, ({ fleet }) => fleet.keys(prefixIn(uri.href)!)),
  )
}

/** Calls `changed` whenever a resource has changed. */
export function watchResource(
  { holds, fleet }: AgentSession,
  uri: string,
  changed: () => void,
): Watch {
  if (uri === AGENTS_URI) return fleet.watchAgents(changed)
  if (uri === HOLDS_URI) {
    const asks = fleet.watchAsks(changed)
    const stop = holds.onChange(changed)
    return {
      close: () => {
        asks.close()
        stop()
      },
    }
  }
  const prefix = prefixIn(uri)
  if (prefix !== undefined) return fleet.watchKeys(prefix, changed)
  throw invalid(
    `uri is ${show(uri)}: subscribe to ${HOLDS_URI}, ${AGENTS_URI}, ${KEYS_URI} or ${KEYS_URI}/PREFIX`,
  )
}

function prefixIn(uri: string): string | undefined {
  if (uri === KEYS_URI) return ''
  if (!uri.startsWith(`${KEYS_URI}/`)) return undefined
  try {
    return decodeURIComponent(uri.slice(KEYS_URI.length + 1))
  } catch {
    throw invalid(`uri is ${show(uri)}: its prefix is not encoded as in URLs. Write %25 for %`)
  }
}
