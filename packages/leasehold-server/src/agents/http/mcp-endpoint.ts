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
import { invalid, LeaseholdError } from 'leasehold/port'
import { credentialsOf } from '../../access/index.ts'
import { packageVersion } from '../../config/index.ts'
import { DEFAULT_CEILINGS, idleLimit } from '../ceilings.ts'
import { agentServer } from '../mcp/server.ts'
import { answerSubscriptions, urisIn } from '../mcp/stdio.ts'
import { Subscriptions } from '../mcp/subscriptions.ts'
import { type AgentIdentity, AgentSessions } from './agent-sessions.ts'
import type { McpOptions, McpStats } from './serve-mcp.ts'

/** Protocol sessions of clients of 2025, on one server. */
const PROTOCOL_SESSIONS_MAX = 10_000
/** A session without a request for this long has ended. */
const SESSION_UNUSED_MS = 3_600_000
/** Streams of one server that are open at the same time. */
const STREAMS_MAX = 1000
const NAME = /^[\w.:@-]{1,100}$/

/** A session of a client of 2025: later requests name it in a header. */
interface ProtocolSession {
  readonly transport: WebStandardStreamableHTTPServerTransport
  readonly identity: AgentIdentity
  /** Requests that are being answered: streams, too. */
  calls: number
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
      if (!reply.raw.writableFinished) gone.abort()
    })
    const delay = admission.payload(Number(request.headers['content-length'] ?? 0))
    if (delay > 0) {
      throw new LeaseholdError('limit-exceeded', `ask again in ${Math.ceil(delay)} ms`)
    }
    const identity = identityOf(request, admission.principal)
    const web = webRequest(request, gone.signal)
    const body = request.body ?? undefined
    if (!(await isLegacyRequest(web, body))) {
      const isListening = (body as { method?: unknown })?.method === 'subscriptions/listen'
      const response = await this.#serveRequest(web, body, identity)
      return this.#send(reply, response, isListening ? identity : undefined)
    }
    const session = this.#sessionOf(web, identity)
    if (session === undefined) return this.#send(reply, await this.#begin(web, body, identity))
    return this.#serveSession(session, web, body, reply)
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

  /** The session that a request of 2025 names. A handle is good for its own principal only. */
  #sessionOf(web: Request, { principal }: AgentIdentity): ProtocolSession | undefined {
    const session = this.#protocolSessions.get(web.headers.get('mcp-session-id') ?? '')
    return session?.identity.principal === principal ? session : undefined
  }

  async #serveSession(
    session: ProtocolSession,
    web: Request,
    body: unknown,
    reply: FastifyReply,
  ): Promise<FastifyReply> {
    const { transport, identity } = session
    const isListening = web.method === 'GET'
    session.calls++
    reply.raw.once('close', () => {
      session.calls--
      session.usedAt = this.#options.clock.now()
    })
    const response = await transport.handleRequest(web, { parsedBody: body })
    return this.#send(reply, response, isListening ? identity : undefined)
  }

  /** The first request of a session. */
  async #begin(web: Request, body: unknown, identity: AgentIdentity): Promise<Response> {
    if (web.headers.has('mcp-session-id')) {
      return refusal(404, -32001, 'no such session: initialize again', body)
    }
    if (!isInitialize(body)) {
      return refusal(400, -32000, 'the header Mcp-Session-Id is missing: initialize first', body)
    }
    const transport = await this.#connect(identity, body)
    return transport.handleRequest(web, { parsedBody: body })
  }

  async #connect(
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
    this.#protocolSessions.set(id, { transport, identity: named, usedAt, calls: 0 })
    return transport
  }

  /** Clients that die do not end their sessions. */
  #makeRoom(): void {
    const unused = [...this.#protocolSessions.values()].filter(({ calls }) => calls === 0)
    const before = this.#options.clock.now() - SESSION_UNUSED_MS
    for (const { transport, usedAt } of unused) if (usedAt < before) void transport.close()
    if (this.#protocolSessions.size < PROTOCOL_SESSIONS_MAX) return
    if (unused.length === 0) {
      throw new LeaseholdError(
        'limit-exceeded',
        `${PROTOCOL_SESSIONS_MAX} MCP sessions are open, the maximum: ask again later`,
      )
    }
    void unused.reduce((a, b) => (a.usedAt <= b.usedAt ? a : b)).transport.close()
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

  /** `listener`: the agent that is there while the response lasts. */
  async #send(
    reply: FastifyReply,
    response: Response,
    listener?: AgentIdentity,
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
    let closeStream = () => {}
    try {
      if (listener !== undefined) closeStream = await this.#sessions.streamOf(listener)
      reply.hijack()
      reply.raw.writeHead(status, Object.fromEntries(headers)).flushHeaders()
      await copyTo(reply.raw, body).catch((error) => {
        this.#options.log.debug({ err: error }, 'an MCP stream failed')
      })
    } finally {
      this.#stats.streams--
      closeStream()
    }
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
  const limit = idle === undefined ? undefined : idleLimit(idle, 'idle', DEFAULT_CEILINGS.idle)
  return { credentials, principal, name: agent, repository, idle: limit }
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
