import type { Leasehold } from 'leasehold'
import type { Clock, LeaseStore, Random, RequestId } from 'leasehold/port'
import type { Principal, ServerActions } from '../access/index.ts'
import type { HttpOptions } from './options.ts'
import type { PrincipalSession } from './requests/principal-session.ts'

/** A JSON schema: it checks requests and is part of the OpenAPI description. */
export type Schema = Readonly<Record<string, unknown>>

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** A parameter in the path or in the query. */
export interface Parameter {
  readonly schema: Schema
  readonly about: string
  readonly required?: boolean
  readonly example?: unknown
}

/** One operation: its parameters, its answer, and its handler. */
export interface Route {
  readonly method: Method
  /** In the OpenAPI form: `/v1/locks/{key}`. */
  readonly path: string
  /** Whether the last parameter is the rest of the path, including slashes, as for keys. */
  readonly rest?: boolean
  /** Its OpenAPI operation id. */
  readonly id: string
  readonly group: string
  readonly title: string
  readonly about?: string
  readonly params?: Readonly<Record<string, Parameter>>
  readonly query?: Readonly<Record<string, Parameter>>
  readonly body?: {
    readonly schema: Schema
    readonly example: unknown
    readonly required?: boolean
  }
  readonly answer: {
    readonly status: 200 | 201
    readonly about: string
    readonly schema: Schema
    readonly type?: string
  }
  /** The statuses of its problems, beside those of every route. */
  readonly problems?: readonly number[]
  /** Whether it accepts an `Idempotency-Key`. */
  readonly repeatable?: boolean
  handle(call: Call): Promise<unknown>
}

/** The shared dependencies of all routes of a server. */
export interface HttpDependencies {
  readonly clock: Clock
  readonly random: Random
  readonly options: HttpOptions
}

/** One authenticated and validated request. */
export interface Call extends HttpDependencies {
  readonly principal: Principal
  /** The store as the caller may use it. */
  readonly store: LeaseStore
  /** The server's own actions on the caller's leases. */
  readonly serverActions: ServerActions
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, never>>
  readonly body: unknown
  /** From the Idempotency-Key. Another request with the same key may already have been answered. */
  readonly request: RequestId | undefined
  /** A header by its lower-case name. */
  header(name: string): string | undefined
  /** Whether the caller has gone; with an Idempotency-Key, all callers with that key. */
  readonly gone: boolean
  /** Aborts when the caller goes, its access token ends, or the server stops. */
  readonly signal: AbortSignal
  /** Runs recipes with a client that lives for this request. */
  leasehold<Result>(work: (leasehold: Leasehold) => Promise<Result>): Promise<Result>
  /** The state of this principal across requests. */
  session(): Promise<PrincipalSession>
  /** Answers with a stream of events. */
  stream(): EventSink
}

/** The writer of a stream of events. */
export interface EventSink {
  /** Sends one event; the reader can resume after its `id`. */
  send(event: string, data: unknown, id?: number): void
  end(): void
  /** Called once, when the reader has gone. */
  closed: () => void
}
