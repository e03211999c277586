import type { FastifyInstance } from 'fastify'
import { type Clock, LeaseholdError, type Random } from 'leasehold/port'
import type { Logger } from 'pino'
import { type Access, isForeign } from '../../access/index.ts'
import { problemFor, sendProblem } from '../../http/index.ts'

const BODY_BYTES = 1 << 20

export interface McpOptions {
  readonly access: Access
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
}

export interface McpStats {
  /** Requests since the start of the server. */
  requests: number
  /** Streams that are open now. */
  streams: number
}

/** MCP of one server, at `/mcp`. */
export interface Mcp {
  readonly stats: Readonly<McpStats>
  /** Agents that hold or wait for something, or listen. */
  readonly activeAgents: number
  close(): Promise<void>
}

/** Serves MCP at `/mcp`. Its libraries are loaded by the first request: most servers get none. */
export function serveMcp(app: FastifyInstance, options: McpOptions): Mcp {
  const stats: McpStats = { requests: 0, streams: 0 }
  let loading: Promise<import('./mcp-endpoint.ts').McpEndpoint> | undefined
  let endpoint: import('./mcp-endpoint.ts').McpEndpoint | undefined
  const load = async () => {
    const { McpEndpoint } = await import('./mcp-endpoint.ts')
    endpoint = new McpEndpoint(options, stats)
    return endpoint
  }
  app.register(async (api) => {
    api.setErrorHandler((error, _request, reply) => sendProblem(reply, problemFor(error)))
    api.addHook('onRequest', (request, reply, done) => {
      reply.header('cache-control', 'no-store').header('x-content-type-options', 'nosniff')
      if (isForeign(request.headers)) throw foreign()
      done()
    })
    api.route({
      method: ['GET', 'POST', 'DELETE'],
      url: '/mcp',
      exposeHeadRoute: false,
      bodyLimit: BODY_BYTES,
      handler: async (request, reply) => {
        stats.requests++
        loading ??= load()
        return (await loading).serve(request, reply)
      },
    })
  })
  return {
    stats,
    get activeAgents() {
      return endpoint?.activeAgents ?? 0
    },
    close: async () => (await loading)?.close(),
  }
}

function foreign(): LeaseholdError {
  return new LeaseholdError('forbidden', 'pages of another origin may not call the tools of agents')
}
