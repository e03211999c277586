import type { ServerResponse } from 'node:http'
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
import { type Admission, credentialsOf, type Principal } from '../access/index.ts'
import type { Office } from './office.ts'
import type { HttpOptions } from './options.ts'
import type { Around, Call, EventSink, Route } from './route.ts'

/** What a call asks of the API that it came by. */
export interface Desk extends Around {
  /** Aborted when the server stops. */
  readonly stopping: AbortSignal
  officeOf(principal: Principal, credentials: ReturnType<typeof credentialsOf>): Promise<Office>
  openStream(reply: FastifyReply): EventSink
}

export class HttpCall implements Call {
  readonly params: Readonly<Record<string, string>>
  readonly request: RequestId | undefined
  readonly #desk: Desk
  readonly #admission: Admission
  readonly #request: FastifyRequest
  readonly #reply: FastifyReply
  #signal: AbortSignal | undefined

  constructor(
    desk: Desk,
    route: Route,
    admission: Admission,
    request: FastifyRequest,
    reply: FastifyReply,
  ) {
    this.#desk = desk
    this.#admission = admission
    this.#request = request
    this.#reply = reply
    this.params = paramsOf(route, request)
    this.request = this.#requestId(route)
  }

  get clock(): Clock {
    return this.#desk.clock
  }

  get random(): Random {
    return this.#desk.random
  }

  get options(): HttpOptions {
    return this.#desk.options
  }

  get principal(): Principal {
    return this.#admission.principal
  }

  get store(): LeaseStore {
    return this.#admission.store
  }

  get query(): Readonly<Record<string, never>> {
    return this.#request.query as Readonly<Record<string, never>>
  }

  get body(): unknown {
    return this.#request.body
  }

  header(name: string): string | undefined {
    const value = this.#request.headers[name]
    return Array.isArray(value) ? value[0] : value
  }

  get gone(): boolean {
    const response: ServerResponse = this.#reply.raw
    return response.destroyed || response.socket === null || response.socket.destroyed
  }

  get signal(): AbortSignal {
    this.#signal ??= this.#newSignal()
    return this.#signal
  }

  async leasehold<Result>(work: (leasehold: Leasehold) => Promise<Result>): Promise<Result> {
    const { clock, random } = this.#desk
    const holder = this.principal.name
    const leasehold = await Leasehold.open(this.store, { holder, clock, random })
    try {
      return await work(leasehold)
    } finally {
      await leasehold.close()
    }
  }

  office(): Promise<Office> {
    return this.#desk.officeOf(this.principal, credentialsOf(this.#request.raw))
  }

  stream(): EventSink {
    const sink = this.#desk.openStream(this.#reply)
    this.#admission.ended = ({ code, message: detail }) => {
      sink.send('bye', { code, detail })
      sink.end()
    }
    return sink
  }

  #newSignal(): AbortSignal {
    const { stopping } = this.#desk
    const controller = new AbortController()
    const stop = () => controller.abort(stopping.reason)
    const left = () => controller.abort(new LeaseholdError('aborted', 'whoever asked has gone'))
    this.#admission.ended = (error) => controller.abort(error)
    this.#reply.raw.once('close', () => {
      stopping.removeEventListener('abort', stop)
      left()
    })
    if (this.gone) left()
    else if (stopping.aborted) stop()
    else stopping.addEventListener('abort', stop, { once: true })
    return controller.signal
  }

  /**
   * A name of one's own for a request, so that sending it again is recognised. It counts for the same
   * caller, method and path only: nobody is answered with what another was.
   */
  #requestId({ repeatable = false, id }: Route): RequestId | undefined {
    const given = this.header('idempotency-key')
    if (given === undefined) return undefined
    if (!repeatable || given === '') {
      throw invalid(
        `Idempotency-Key is not for ${id}, or is empty: leave it out, repeating this is harmless or a new request`,
      )
    }
    const path = this.#request.url.split('?', 1)[0]
    return `http-${sha256(JSON.stringify([this.principal.name, id, path, given]))}`
  }
}

/** A route with a rest has but that: a key. */
function paramsOf({ rest }: Route, { params }: FastifyRequest): Readonly<Record<string, string>> {
  const given = params as Readonly<Record<string, string>>
  return rest ? { key: given['*']! } : given
}
