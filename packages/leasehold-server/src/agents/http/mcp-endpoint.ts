import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import {
  createMcpHandler,
  isLegacyRequest,
  type McpServerFactory,
  type ServerEventBus,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { invalid, LeaseholdError, milliseconds } from 'leasehold/port'
import { credentialsOf } from '../../access/index.ts'
import { packageVersion } from '../../config/index.ts'
import { DEFAULT_CEILINGS } from '../hold-requests.ts'
import { agentServer } from '../mcp/server.ts'
import { answerSubscriptions, urisIn } from '../mcp/stdio.ts'
import { Subscriptions } from '../mcp/subscriptions.ts'
import { type AgentIdentity, AgentSessions } from './agent-sessions.ts'
import type { McpOptions, McpStats } from './serve-mcp.ts'

/** Protocol sessions of clients of 2025, on one server. */
const PROTOCOL_SESSIONS_MAX = 10_000
/** Streams of one server that are open at the same time. */
const STREAMS_MAX = 1000
const NAME = /^[\w.:@-]{1,100}$/

/** A session of a client of 2025: later requests name it in a header. */
interface ProtocolSession {
  readonly transport: WebStandardStreamableHTTPServerTransport
  readonly identity: AgentIdentity
  usedAt: number
}

/**
 * MCP over HTTP, at `/mcp`. Clients of 2026 send requests that stand alone; clients of 2025 begin a
 * session. Both get the same tools, under the rights of their access token.
 */
export class McpEndpoint {
  readonly #stats: McpStats
  readonly #options: McpOptions
  readonly #sessions: AgentSessions
  readonly #protocolSessions = new Map<string, ProtocolSession>()
  readonly #open = new Set<AbortController>()
  readonly #version = packageVersion()

  constructor(options: McpOptions, stats: McpStats) {
    this.#options = options
    this.#stats = stats
    this.#sessions = new AgentSessions(options)
  }

  /** Agents that hold or wait for something, or listen. */
  get activeAgents(): number {
    return this.#sessions.active
  }

  /** Ends all streams, and releases everything that agents hold. */
  async close(): Promise<void> {
    for (const each of this.#open) each.abort()
    const transports = [...this.#protocolSessions.values()].map(({ transport }) => transport)
    this.#protocolSessions.clear()
    await Promise.allSettled(transports.map((transport) => transport.close()))
    await this.#sessions.close()
  }

  async serve(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const admission = this.#options.access.admit(credentialsOf(request.raw))
    const gone = new AbortController()
    this.#open.add(gone)
    reply.raw.once('close', () => {
      this.#open.delete(gone)
      admission.leave()
      gone.abort()
    })
    const delay = admission.payload(Number(request.headers['content-length'] ?? 0))
    if (delay > 0) {
      throw new LeaseholdError('limit-exceeded', `ask again in ${Math.ceil(delay)} ms`)
    }
    const identity = identityOf(request, admission.principal)
    const web = webRequest(request, gone.signal)
    const body = request.body ?? undefined
    const isLegacy = await isLegacyRequest(web, body)
    const response = await (isLegacy
      ? this.#serveSession(web, body, identity)
      : this.#serveRequest(web, body, identity))
    return this.#send(reply, response, identity)
  }

  /** A request of 2026: it stands alone, and so does its server object. */
  #serveRequest(web: Request, body: unknown, identity: AgentIdentity): Promise<Response> {
    const factory: McpServerFactory = () => this.#serverFor(identity)
    const { method, params } = (body ?? {}) as { method?: string; params?: never }
    const uris = method === 'subscriptions/listen' ? urisIn(params) : []
    const bus = this.#busFor(identity, uris)
    const handler = createMcpHandler(factory, { legacy: 'reject', bus })
    return handler.fetch(web, { parsedBody: body })
  }

  async #serveSession(web: Request, body: unknown, identity: AgentIdentity): Promise<Response> {
    const id = web.headers.get('mcp-session-id')
    const known = id === null ? undefined : this.#protocolSessions.get(id)
    if (known === undefined) {
      if (id !== null) return refusal(404, -32001, 'no such session: initialize again', body)
      if (!isInitialize(body)) {
        return refusal(400, -32000, 'the header Mcp-Session-Id is missing: initialize first', body)
      }
      return (await this.#begin(identity, body)).handleRequest(web, { parsedBody: body })
    }
    if (known.identity.principal !== identity.principal) {
      return refusal(404, -32001, 'no such session: initialize again', body)
    }
    known.usedAt = this.#options.clock.now()
    return known.transport.handleRequest(web, { parsedBody: body })
  }

  async #begin(
    identity: AgentIdentity,
    body: unknown,
  ): Promise<WebStandardStreamableHTTPServerTransport> {
    this.#makeRoom()
    const id = `mcp-${this.#options.random.id()}`
    const named = identity.name === undefined ? { ...identity, ...nameFrom(id, body) } : identity
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      onsessionclosed: () => this.#sessions.end(named),
    })
    const server = this.#serverFor(named)
    const subscriptions = new Subscriptions(
      (caller) => this.#sessions.of(named, caller),
      (uri) => void server.server.sendResourceUpdated({ uri }).catch(() => {}),
    )
    answerSubscriptions(server, subscriptions)
    await server.connect(transport)
    server.server.onclose = () => {
      subscriptions.close()
      this.#protocolSessions.delete(id)
    }
    const usedAt = this.#options.clock.now()
    this.#protocolSessions.set(id, { transport, identity: named, usedAt })
    return transport
  }

  #makeRoom(): void {
    if (this.#protocolSessions.size < PROTOCOL_SESSIONS_MAX) return
    const oldest = [...this.#protocolSessions.values()].reduce((a, b) =>
      a.usedAt <= b.usedAt ? a : b,
    )
    void oldest.transport.close()
  }

  #serverFor(identity: AgentIdentity) {
    const sessionOf = (caller: Parameters<AgentSessions['of']>[1]) =>
      this.#sessions.of(identity, caller)
    return agentServer({ sessionOf, version: this.#version })
  }

  /** Publishes the updates of these resources while the SDK listens to it. */
  #busFor(identity: AgentIdentity, uris: readonly string[]): ServerEventBus {
    return {
      publish: () => {},
      subscribe: (listener) => {
        const subscriptions = new Subscriptions(
          (caller) => this.#sessions.of(identity, caller),
          (uri) => listener({ kind: 'resource_updated', uri }),
        )
        for (const uri of uris) void subscriptions.follow(uri, this).catch(() => {})
        return () => subscriptions.close()
      },
    }
  }

  async #send(
    reply: FastifyReply,
    response: Response,
    identity: AgentIdentity,
  ): Promise<FastifyReply> {
    const { body, headers, status } = response
    if (body === null || !headers.get('content-type')?.startsWith('text/event-stream')) {
      for (const [name, value] of headers) reply.header(name, value)
      return reply.code(status).send(Buffer.from(await response.arrayBuffer()))
    }
    if (this.#stats.streams >= STREAMS_MAX) {
      await body.cancel()
      throw new LeaseholdError('limit-exceeded', `${STREAMS_MAX} streams are open: ask again later`)
    }
    this.#stats.streams++
    const closeStream = await this.#sessions.streamOf(identity)
    reply.hijack()
    reply.raw.writeHead(status, Object.fromEntries(headers)).flushHeaders()
    await copyTo(reply.raw, body).catch((error) => {
      this.#options.log.debug({ err: error }, 'an MCP stream failed')
    })
    this.#stats.streams--
    closeStream()
    return reply
  }
}

/** Writes a stream to a client until one of them ends. */
async function copyTo(raw: ServerResponse, body: ReadableStream<Uint8Array>): Promise<void> {
  const reader = body.getReader()
  const leave = () => void reader.cancel().catch(() => {})
  raw.once('close', leave)
  if (raw.destroyed) leave()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    if (!raw.write(value)) await Promise.race([once(raw, 'drain'), once(raw, 'close')])
  }
  raw.end()
}

/** Who calls, from the URL: `/mcp?agent=ada&repository=shop&idle=30m`. */
function identityOf(
  { raw, query }: FastifyRequest,
  principal: AgentIdentity['principal'],
): AgentIdentity {
  const { agent, repository, idle } = query as Record<string, string | undefined>
  const credentials = credentialsOf(raw)
  if (agent !== undefined && !NAME.test(agent)) {
    throw invalid(`agent is ${JSON.stringify(agent)}: use 1 to 100 letters, digits and . _ : @ -`)
  }
  return { credentials, principal, name: agent, repository, idle: idleOf(idle) }
}

function idleOf(given: string | undefined): number | undefined {
  if (given === undefined) return undefined
  const ms = milliseconds(given as '10m', 'idle')
  if (ms <= DEFAULT_CEILINGS.idle) return ms
  throw invalid(`idle is ${given}: use at most ${DEFAULT_CEILINGS.idle / 60_000}m`)
}

/** A client without a name in its URL is known by its session. */
function nameFrom(id: string, body: unknown): { readonly name: string; readonly shown: string } {
  const { params } = body as { params?: { clientInfo?: { name?: unknown } } }
  const client = String(params?.clientInfo?.name ?? 'agent').replaceAll(/[^\w.:@-]/g, '-')
  return { name: id, shown: `${client.slice(0, 60)}-${id.slice(4, 10)}` }
}

function isInitialize(body: unknown): boolean {
  return (body as { method?: unknown } | undefined)?.method === 'initialize'
}

function webRequest({ raw, headers }: FastifyRequest, signal: AbortSignal): Request {
  const given = Object.entries(headers).filter((entry): entry is [string, string] => {
    return typeof entry[1] === 'string'
  })
  const { method = 'GET', url = '/mcp' } = raw
  // The body was parsed before, and is passed beside the request.
  return new Request(new URL(url, 'http://mcp.invalid'), { method, headers: given, signal })
}

function refusal(status: number, code: number, message: string, body: unknown): Response {
  const id = (body as { id?: unknown } | undefined)?.id ?? null
  return Response.json({ jsonrpc: '2.0', error: { code, message }, id }, { status })
}
