import type { FastifyReply, FastifyRequest } from 'fastify'
import { Leasehold } from 'leasehold'
import {
  type Clock,
  invalid,
  LeaseholdError,
  type LeaseStore,
  type Random,
  type RequestId,
  sha256,
} from 'leasehold/port'
import {
  type Admission,
  type Credentials,
  credentialsOf,
  type Principal,
  type ServerActions,
} from '../../access/index.ts'
import type { HttpOptions } from '../options.ts'
import type { Call, EventSink, HttpDependencies, Route } from '../route.ts'
import type { PrincipalSession } from './principal-session.ts'

/** What an API handler receives from the API. */
export interface ApiContext extends HttpDependencies {
  /** Aborts when the server stops. */
  readonly stopping: AbortSignal
  admit(credentials: Credentials): Admission
  sessionOf(principal: Principal, credentials: Credentials): Promise<PrincipalSession>
  openStream(reply: FastifyReply): EventSink
}

/** The recipients of an answer: one connection, or all with the same Idempotency-Key. */
export interface Audience {
  readonly gone: boolean
  /** Calls `left` once, when the last of them has gone. */
  whenGone(left: () => void): void
}

/** The connection of one request. */
export class ConnectionAudience implements Audience {
  readonly #reply: FastifyReply
  readonly #request: FastifyRequest

  constructor(reply: FastifyReply, request: FastifyRequest) {
    this.#reply = reply
    this.#request = request
  }

  get gone(): boolean {
    // A response that waits behind another one on its connection has no socket yet.
    return this.#reply.raw.destroyed || this.#request.raw.socket.destroyed
  }

  whenGone(left: () => void): void {
    if (this.gone) left()
    else this.#reply.raw.once('close', left)
  }
}

/** The parts of a call. */
export interface CallParts {
  readonly api: ApiContext
  readonly route: Route
  readonly admission: Admission
  readonly request: FastifyRequest
  readonly reply: FastifyReply
}

export class HttpCall implements Call {
  readonly params: Readonly<Record<string, string>>
  readonly request: RequestId | undefined
  readonly #parts: CallParts
  readonly #audience: Audience
  #signal: AbortSignal | undefined

  constructor(
    parts: CallParts,
    request: RequestId | undefined = requestIdOf(parts),
    audience: Audience = new ConnectionAudience(parts.reply, parts.request),
  ) {
    this.#parts = parts
    this.#audience = audience
    this.params = paramsOf(parts.route, parts.request)
    this.request = request
  }

  /** The same request for all callers that sent it, with this id. */
  sharedBy(audience: Audience, admission: Admission, request: RequestId): HttpCall {
    return new HttpCall({ ...this.#parts, admission }, request, audience)
  }

  get audience(): Audience {
    return this.#audience
  }

  get clock(): Clock {
    return this.#parts.api.clock
  }

  get random(): Random {
    return this.#parts.api.random
  }

  get options(): HttpOptions {
    return this.#parts.api.options
  }

  get principal(): Principal {
    return this.#parts.admission.principal
  }

  get store(): LeaseStore {
    return this.#parts.admission.store
  }

  get serverActions(): ServerActions {
    return this.#parts.admission.serverActions
  }

  get query(): Readonly<Record<string, never>> {
    return this.#parts.request.query as Readonly<Record<string, never>>
  }

  get body(): unknown {
    return this.#parts.request.body
  }

  header(name: string): string | undefined {
    // Only set-cookie is a list, and requests do not have it.
    return this.#parts.request.headers[name] as string | undefined
  }

  get gone(): boolean {
    return this.#audience.gone
  }

  get signal(): AbortSignal {
    this.#signal ??= this.#newSignal()
    return this.#signal
  }

  async leasehold<Result>(work: (leasehold: Leasehold) => Promise<Result>): Promise<Result> {
    const { clock, random } = this.#parts.api
    const holder = this.principal.name
    const leasehold = await Leasehold.open(this.store, { holder, clock, random })
    try {
      return await work(leasehold)
    } finally {
      await leasehold.close()
    }
  }

  /** Admits the caller again, for work that outlives its connection. */
  admitAgain(): Admission {
    return this.#parts.api.admit(credentialsOf(this.#parts.request.raw))
  }

  session(): Promise<PrincipalSession> {
    return this.#parts.api.sessionOf(this.principal, credentialsOf(this.#parts.request.raw))
  }

  stream(): EventSink {
    const sink = this.#parts.api.openStream(this.#parts.reply)
    this.#parts.admission.ended = ({ code, message: detail }) => {
      sink.send('bye', { code, detail })
      sink.end()
    }
    return sink
  }

  #newSignal(): AbortSignal {
    const { api, admission } = this.#parts
    const { stopping } = api
    const controller = new AbortController()
    const stop = () => controller.abort(stopping.reason)
    admission.ended = (error) => controller.abort(error)
    if (stopping.aborted) stop()
    else stopping.addEventListener('abort', stop, { once: true })
    this.#audience.whenGone(() => {
      stopping.removeEventListener('abort', stop)
      controller.abort(goneError())
    })
    return controller.signal
  }
}

export function goneError(): LeaseholdError {
  return new LeaseholdError('aborted', 'the caller has gone')
}

/**
 * The request id of an Idempotency-Key. It depends on the caller, the operation and the path, so that
 * no caller receives the answer of another.
 */
function requestIdOf({ route, admission, request }: CallParts): RequestId | undefined {
  const { repeatable = false, id } = route
  const given = request.headers['idempotency-key']
  if (given === undefined) return undefined
  if (!repeatable || given === '') {
    throw invalid(`Idempotency-Key is empty, or ${id} does not accept it: leave it out`)
  }
  const path = request.url.split('?', 1)[0]
  return `http-${sha256(JSON.stringify([admission.principal.name, id, path, given]))}`
}

/** A route with `rest` has one parameter: a key. */
function paramsOf({ rest }: Route, { params }: FastifyRequest): Readonly<Record<string, string>> {
  const given = params as Readonly<Record<string, string>>
  return rest ? { key: given['*']! } : given
}
