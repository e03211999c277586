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
  type ServerActs,
} from '../access/index.ts'
import type { Office } from './office.ts'
import type { HttpOptions } from './options.ts'
import type { Around, Call, EventSink, Route } from './route.ts'

/** What a call asks of the API that it came by. */
export interface Desk extends Around {
  /** Aborted when the server stops. */
  readonly stopping: AbortSignal
  admit(credentials: Credentials): Admission
  officeOf(principal: Principal, credentials: Credentials): Promise<Office>
  openStream(reply: FastifyReply): EventSink
}

/** Whoever waits for the answer: one connection, or all that sent the same Idempotency-Key. */
export interface Audience {
  readonly gone: boolean
  /** Calls back once, when the last of them has gone. */
  whenGone(left: () => void): void
}

/** The connection of one request. */
export class Connected implements Audience {
  readonly #reply: FastifyReply
  readonly #request: FastifyRequest

  constructor(reply: FastifyReply, request: FastifyRequest) {
    this.#reply = reply
    this.#request = request
  }

  get gone(): boolean {
    // A response that waits behind another of its connection has no socket yet.
    return this.#reply.raw.destroyed || this.#request.raw.socket.destroyed
  }

  whenGone(left: () => void): void {
    if (this.gone) left()
    else this.#reply.raw.once('close', left)
  }
}

/** What a call is made of. */
export interface CallParts {
  readonly desk: Desk
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
    audience: Audience = new Connected(parts.reply, parts.request),
  ) {
    this.#parts = parts
    this.#audience = audience
    this.params = paramsOf(parts.route, parts.request)
    this.request = request
  }

  /** The same request on behalf of all who sent it, under this id. */
  sharedBy(audience: Audience, admission: Admission, request: RequestId): HttpCall {
    return new HttpCall({ ...this.#parts, admission }, request, audience)
  }

  get audience(): Audience {
    return this.#audience
  }

  get clock(): Clock {
    return this.#parts.desk.clock
  }

  get random(): Random {
    return this.#parts.desk.random
  }

  get options(): HttpOptions {
    return this.#parts.desk.options
  }

  get principal(): Principal {
    return this.#parts.admission.principal
  }

  get store(): LeaseStore {
    return this.#parts.admission.store
  }

  get acts(): ServerActs {
    return this.#parts.admission.acts
  }

  get query(): Readonly<Record<string, never>> {
    return this.#parts.request.query as Readonly<Record<string, never>>
  }

  get body(): unknown {
    return this.#parts.request.body
  }

  header(name: string): string | undefined {
    // Only set-cookie comes as a list, and nobody asks a request for that.
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
    const { clock, random } = this.#parts.desk
    const holder = this.principal.name
    const leasehold = await Leasehold.open(this.store, { holder, clock, random })
    try {
      return await work(leasehold)
    } finally {
      await leasehold.close()
    }
  }

  /** The server lets them in once more, for what outlives their connection. */
  admitAgain(): Admission {
    return this.#parts.desk.admit(credentialsOf(this.#parts.request.raw))
  }

  office(): Promise<Office> {
    return this.#parts.desk.officeOf(this.principal, credentialsOf(this.#parts.request.raw))
  }

  stream(): EventSink {
    const sink = this.#parts.desk.openStream(this.#parts.reply)
    this.#parts.admission.ended = ({ code, message: detail }) => {
      sink.send('bye', { code, detail })
      sink.end()
    }
    return sink
  }

  #newSignal(): AbortSignal {
    const { desk, admission } = this.#parts
    const { stopping } = desk
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
  return new LeaseholdError('aborted', 'whoever asked has gone')
}

/**
 * A name of one's own for a request, so that sending it again is recognised. It counts for the same
 * caller, method and path only: nobody is answered with what another was.
 */
function requestIdOf({ route, admission, request }: CallParts): RequestId | undefined {
  const { repeatable = false, id } = route
  const given = request.headers['idempotency-key']
  if (given === undefined) return undefined
  if (!repeatable || given === '') {
    throw invalid(
      `Idempotency-Key is not for ${id}, or is empty: leave it out, repeating this is harmless or a new request`,
    )
  }
  const path = request.url.split('?', 1)[0]
  return `http-${sha256(JSON.stringify([admission.principal.name, id, path, given]))}`
}

/** A route with a rest has but that: a key. */
function paramsOf({ rest }: Route, { params }: FastifyRequest): Readonly<Record<string, string>> {
  const given = params as Readonly<Record<string, string>>
  return rest ? { key: given['*']! } : given
}
