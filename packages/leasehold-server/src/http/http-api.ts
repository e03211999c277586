import { setMaxListeners } from 'node:events'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Clock, LeaseholdError, type Random, show, type Timer } from 'leasehold/port'
import type { Logger } from 'pino'
import {
  type Access,
  type Admission,
  type Credentials,
  credentialsOf,
  isForeign,
  type Principal,
} from '../access/index.ts'
import { addDescription } from './openapi/description.ts'
import type { HttpOptions } from './options.ts'
import { type ApiContext, HttpCall } from './requests/call.ts'
import { IdempotentRequests } from './requests/idempotency.ts'
import { PrincipalSession } from './requests/principal-session.ts'
import { querySchema } from './requests/validation.ts'
import { EventStream } from './responses/event-stream.ts'
import { asJson, problemFor, sendNotFound, sendProblem } from './responses/responses.ts'
import type { EventSink, Route } from './route.ts'
import { ROUTES } from './routes/index.ts'

export interface HttpApiOptions {
  readonly access: Access
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly options: HttpOptions
}

/** Counts since the start of the server. */
export interface HttpStats {
  /** Admitted requests, and answered problems. */
  requests: number
  problems: number
  /** Waiting requests and open event streams now. */
  waiting: number
  streams: number
  /** Event streams that were closed because their reader was too slow. */
  dropped: number
}

const PREFIX = '/v1'
const ADMISSION = Symbol('admission')

interface Admitted {
  [ADMISSION]?: Admission
}

/** The admission of a request that `addProtocol` let in. */
export type AdmissionOf = (request: FastifyRequest) => Admission

const admissionOf: AdmissionOf = (request) => (request as Admitted)[ADMISSION]!

/**
 * The HTTP API of one server: the port and the recipes for clients that have only HTTP.
 *
 * `Access` admits every request, and the request uses only the store that it receives there. What a
 * caller holds is a lease that the caller renews.
 */
export class HttpApi implements ApiContext {
  readonly stats: HttpStats = { requests: 0, problems: 0, waiting: 0, streams: 0, dropped: 0 }
  readonly clock: Clock
  readonly random: Random
  readonly options: HttpOptions
  readonly #access: Access
  readonly #log: Logger
  readonly #stopping = new AbortController()
  readonly #sinks = new Set<EventSink>()
  readonly #sessions = new Map<Principal, Promise<PrincipalSession>>()
  readonly #idempotent = new IdempotentRequests()
  #inFlight = 0
  #idle: (() => void) | undefined

  constructor({ access, clock, random, log, options }: HttpApiOptions) {
    this.#access = access
    this.clock = clock
    this.random = random
    this.#log = log
    this.options = options
    // Every waiting request listens to it; Node would warn of a leak from the eleventh listener.
    setMaxListeners(0, this.#stopping.signal)
  }

  get stopping(): AbortSignal {
    return this.#stopping.signal
  }

  /** Adds all routes and their description. */
  addTo(app: FastifyInstance): void {
    addDescription(app, ROUTES)
    this.addProtocol(app, PREFIX, (api) => {
      for (const route of ROUTES) this.#add(api, route)
    })
    app.setNotFoundHandler(sendNotFound)
  }

  /**
   * Adds the routes of a protocol below a prefix. Its callers are authenticated, limited and counted
   * as those of the API, and a stopping server answers them first.
   */
  addProtocol(
    app: FastifyInstance,
    prefix: string,
    addRoutes: (api: FastifyInstance, admissionOf: AdmissionOf) => void,
  ): void {
    const add = async (api: FastifyInstance) => {
      api.addHook('onRequest', (request, reply, done) => {
        this.#begin(request, reply)
        done()
      })
      api.setErrorHandler((error, request, reply) => this.#fail(error, request, reply))
      api.setNotFoundHandler(sendNotFound)
      api.setReplySerializer(asJson)
      addRoutes(api, admissionOf)
    }
    app.register(add, { prefix })
  }

  /**
   * Stops the API: starts no more requests, tells waiting callers to ask again, withdraws their
   * claims, and ends event streams. Resolves when everything is answered, or after the drain time.
   */
  async close(): Promise<void> {
    this.#stopping.abort(new LeaseholdError('closed', 'the server is stopping; ask again'))
    for (const sink of this.#sinks) {
      sink.send('bye', { code: 'closed', detail: 'the server is stopping; reconnect' })
      sink.end()
    }
    let timer: Timer | undefined
    await new Promise<void>((resolve) => {
      this.#idle = resolve
      timer = this.clock.timer(this.clock.now() + this.options.drain, resolve, true)
      if (this.#inFlight === 0) resolve()
    })
    timer?.cancel()
    const sessions = [...this.#sessions.values()]
    this.#sessions.clear()
    await Promise.allSettled(sessions.map(async (session) => (await session).close()))
  }

  admit(credentials: Credentials): Admission {
    return this.#access.admit(credentials)
  }

  sessionOf(principal: Principal, credentials: Credentials): Promise<PrincipalSession> {
    const known = this.#sessions.get(principal)
    if (known !== undefined) return known
    const admission = this.#access.admit(credentials)
    const session = PrincipalSession.open(admission, this)
    this.#sessions.set(principal, session)
    admission.ended = () => {
      this.#sessions.delete(principal)
      void session.then((it) => it.close()).catch(() => {})
    }
    return session
  }

  openStream(reply: FastifyReply): EventSink {
    const { clock, options, stats } = this
    if (stats.streams >= options.streams) throw tooMany(`${options.streams} event streams are open`)
    reply.hijack()
    const { heartbeat, buffered } = options
    const dropped = () => void stats.dropped++
    const sink = new EventStream(reply.raw, { clock, heartbeat, buffered, dropped })
    this.#sinks.add(sink)
    stats.streams++
    reply.raw.once('close', () => {
      this.#sinks.delete(sink)
      stats.streams--
    })
    return sink
  }

  #add(api: FastifyInstance, route: Route) {
    const { method, path, rest, query, body } = route
    const url = path.slice(PREFIX.length).replaceAll(/\{(\w+)\}/g, ':$1')
    api.route({
      method,
      url: rest ? url.replace(/:\w+$/, '*') : url,
      exposeHeadRoute: false,
      bodyLimit: this.options.bodyBytes,
      schema: { querystring: querySchema(query), ...(body && { body: body.schema }) },
      handler: (request, reply) => this.#serve(route, request, reply),
    })
  }

  /** Runs before the body is read: authenticates the caller and checks the limits. */
  #begin(request: FastifyRequest, reply: FastifyReply): void {
    reply.header('cache-control', 'no-store').header('x-content-type-options', 'nosniff')
    if (this.stopping.aborted) throw this.stopping.reason
    refuseForeign(request)
    const admission = this.#access.admit(credentialsOf(request.raw))
    ;(request as Admitted)[ADMISSION] = admission
    this.stats.requests++
    this.#inFlight++
    const delay = admission.payload(this.#bodyBytes(request))
    reply.raw.once('close', () => {
      admission.leave()
      this.#finished()
    })
    if (delay > 0) throw tooMuch(admission.principal, delay)
  }

  /** A body without a length may have the maximum length. */
  #bodyBytes({ headers }: FastifyRequest): number {
    const length = Number(headers['content-length'] ?? 0)
    return headers['transfer-encoding'] === undefined ? length : this.options.bodyBytes
  }

  #finished(): void {
    if (--this.#inFlight === 0) this.#idle?.()
  }

  async #serve(route: Route, request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    if (route.body === undefined) refuseBody(route, request.body)
    const admission = admissionOf(request)
    const call = new HttpCall({ api: this, route, admission, request, reply })
    const waits = call.query['wait'] !== undefined
    if (waits && this.stats.waiting >= this.options.waits) {
      throw tooMany(`${this.options.waits} requests wait`)
    }
    if (waits) this.stats.waiting++
    // Counted until it is done, even if its connection closes: it may have to withdraw a claim.
    this.#inFlight++
    try {
      const id = call.request
      const answer = await (id === undefined
        ? route.handle(call)
        : this.#idempotent.answer(route, call, id))
      reply.code(route.answer.status)
      return answer
    } finally {
      if (waits) this.stats.waiting--
      this.#finished()
    }
  }

  #fail(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    this.stats.problems++
    const problem = problemFor(error)
    if (problem.code === 'unknown-outcome' || problem.status === 500) {
      this.#log.error({ err: error, method: request.method }, 'a request failed')
    }
    return sendProblem(reply, problem)
  }
}

/** A page of another origin must not change anything through the browser of a user. */
function refuseForeign({ method, headers }: FastifyRequest): void {
  if (method === 'GET' || !isForeign(headers)) return
  const page = headers.origin!.slice(0, 100)
  throw new LeaseholdError('forbidden', `a page of the origin ${page} may not change anything`)
}

/** Refuses an unused body instead of ignoring it silently, as in a query. */
function refuseBody({ method, path, query = {} }: Route, body: unknown): void {
  if (Object.keys(body ?? {}).length === 0) return
  const names = Object.keys(query).slice(0, 2)
  const example = names.length > 0 ? `?${names.map((name) => `${name}=…`).join('&')}` : ''
  throw new LeaseholdError(
    'invalid-argument',
    `${method} ${path} takes no body: use the query${example && `, ${example}`}`,
  )
}

function tooMuch({ name, quota }: Principal, delay: number): LeaseholdError {
  return new LeaseholdError(
    'limit-exceeded',
    `${show(name)} may send at most ${quota.bytesPerSecond} bytes per second: ask again in ${Math.ceil(delay)} ms`,
  )
}

function tooMany(what: string): LeaseholdError {
  return new LeaseholdError('limit-exceeded', `${what} on this server already: ask again later`)
}
