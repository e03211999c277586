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
import { answerNothing, asJson, problemFor, sendProblem } from './answers.ts'
import { type Desk, HttpCall } from './call.ts'
import { addDescription } from './description.ts'
import { EventStream } from './event-stream.ts'
import { Office } from './office.ts'
import type { HttpOptions } from './options.ts'
import { Repeats } from './repeats.ts'
import type { EventSink, Route } from './route.ts'
import { ROUTES } from './routes.ts'
import { querySchema } from './validation.ts'

export interface HttpApiOptions {
  readonly access: Access
  readonly clock: Clock
  readonly random: Random
  readonly log: Logger
  readonly options: HttpOptions
}

/** What has been counted since the server was started. */
export interface HttpStats {
  /** Requests that were let in, and problems that were answered. */
  requests: number
  problems: number
  /** Requests that wait and event streams that are open, now. */
  waiting: number
  streams: number
  /** Event streams that were cut off because nobody read them. */
  dropped: number
}

const PREFIX = '/v1'
const ADMISSION = Symbol('admission')

interface Admitted {
  [ADMISSION]?: Admission
}

/**
 * The HTTP API of one server: the port and the recipes, for whoever has nothing but HTTP.
 *
 * It adds no meaning of its own: every request is let in by `Access` and uses the store that it was
 * given there, and nothing else. What is held for a caller is a lease that the caller renews.
 */
export class HttpApi implements Desk {
  readonly stats: HttpStats = { requests: 0, problems: 0, waiting: 0, streams: 0, dropped: 0 }
  readonly clock: Clock
  readonly random: Random
  readonly options: HttpOptions
  readonly #access: Access
  readonly #log: Logger
  readonly #stopping = new AbortController()
  readonly #sinks = new Set<EventSink>()
  readonly #offices = new Map<Principal, Promise<Office>>()
  readonly #repeats = new Repeats()
  #inFlight = 0
  #idle: (() => void) | undefined

  constructor({ access, clock, random, log, options }: HttpApiOptions) {
    this.#access = access
    this.clock = clock
    this.random = random
    this.#log = log
    this.options = options
    // Every request that waits listens to it; from the eleventh on Node would warn of a leak.
    setMaxListeners(0, this.#stopping.signal)
  }

  get stopping(): AbortSignal {
    return this.#stopping.signal
  }

  /** Adds all routes, with their description. */
  addTo(app: FastifyInstance): void {
    addDescription(app, ROUTES)
    const addRoutes = async (api: FastifyInstance) => {
      api.addHook('onRequest', (request, reply, done) => {
        this.#begin(request, reply)
        done()
      })
      api.setErrorHandler((error, request, reply) => this.#fail(error, request, reply))
      api.setNotFoundHandler(answerNothing)
      api.setReplySerializer(asJson)
      for (const route of ROUTES) this.#add(api, route)
    }
    app.register(addRoutes, { prefix: PREFIX })
    app.setNotFoundHandler(answerNothing)
  }

  /**
   * Stops: nothing more is begun, those who wait are told to ask again and leave no claim behind,
   * event streams end. Fulfilled when all is answered, or is late.
   */
  async close(): Promise<void> {
    this.#stopping.abort(new LeaseholdError('closed', 'the server stops: ask again'))
    for (const sink of this.#sinks) {
      sink.send('bye', { code: 'closed', detail: 'the server stops: connect again' })
      sink.end()
    }
    let timer: Timer | undefined
    await new Promise<void>((resolve) => {
      this.#idle = resolve
      timer = this.clock.timer(this.clock.now() + this.options.drain, resolve, true)
      if (this.#inFlight === 0) resolve()
    })
    timer?.cancel()
    const offices = [...this.#offices.values()]
    this.#offices.clear()
    await Promise.allSettled(offices.map(async (office) => (await office).close()))
  }

  admit(credentials: Credentials): Admission {
    return this.#access.admit(credentials)
  }

  officeOf(principal: Principal, credentials: Credentials): Promise<Office> {
    const known = this.#offices.get(principal)
    if (known !== undefined) return known
    const admission = this.#access.admit(credentials)
    const office = Office.open(admission, this)
    this.#offices.set(principal, office)
    admission.ended = () => {
      this.#offices.delete(principal)
      void office.then((it) => it.close()).catch(() => {})
    }
    return office
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

  /** Before anything is read: who it is, and whether anything is begun at all. */
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

  /** A body whose length is not given may be as long as any. */
  #bodyBytes({ headers }: FastifyRequest): number {
    const length = Number(headers['content-length'] ?? 0)
    return headers['transfer-encoding'] === undefined ? length : this.options.bodyBytes
  }

  #finished(): void {
    if (--this.#inFlight === 0) this.#idle?.()
  }

  async #serve(route: Route, request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    if (route.body === undefined) refuseBody(route, request.body)
    const admission = (request as Admitted)[ADMISSION]!
    const call = new HttpCall({ desk: this, route, admission, request, reply })
    const waits = call.query['wait'] !== undefined
    if (waits && this.stats.waiting >= this.options.waits) {
      throw tooMany(`${this.options.waits} requests wait`)
    }
    if (waits) this.stats.waiting++
    // Counted until it is done, also if its connection is closed before: it may withdraw something.
    this.#inFlight++
    try {
      const id = call.request
      const answer = await (id === undefined
        ? route.handle(call)
        : this.#repeats.answer(route, call, id))
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

/** A page in somebody's browser must not change what only their machine can reach. */
function refuseForeign({ method, headers }: FastifyRequest): void {
  if (method === 'GET' || !isForeign(headers)) return
  const page = headers.origin!.slice(0, 100)
  throw new LeaseholdError('forbidden', `a page of ${page} may not change anything`)
}

/** What would be passed over in silence is refused, as in a query. */
function refuseBody({ method, path, query = {} }: Route, body: unknown): void {
  if (Object.keys(body ?? {}).length === 0) return
  const names = Object.keys(query).slice(0, 2)
  const example = names.length > 0 ? `?${names.map((name) => `${name}=…`).join('&')}` : ''
  throw new LeaseholdError(
    'invalid-argument',
    `${method} ${path} takes no body: write what it needs into the query${example && `, ${example}`}`,
  )
}

function tooMuch({ name, quota }: Principal, delay: number): LeaseholdError {
  return new LeaseholdError(
    'limit-exceeded',
    `${show(name)} may send at most ${quota.bytesPerSecond} bytes a second: ask again in ${Math.ceil(delay)} ms`,
  )
}

function tooMany(what: string): LeaseholdError {
  return new LeaseholdError('limit-exceeded', `${what} at this server already: ask again later`)
}
