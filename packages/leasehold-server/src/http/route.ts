import type { Leasehold } from 'leasehold'
import type { Clock, LeaseStore, Random, RequestId } from 'leasehold/port'
import type { Principal, ServerActs } from '../access/index.ts'
import type { Office } from './office.ts'
import type { HttpOptions } from './options.ts'

/** A JSON schema: the same one checks requests and stands in the description. */
export type Schema = Readonly<Record<string, unknown>>

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** A part of the path or of the query. */
export interface Parameter {
  readonly schema: Schema
  readonly about: string
  readonly required?: boolean
  readonly example?: unknown
}

/** One operation: what it takes, what it answers, and how it is done. */
export interface Route {
  readonly method: Method
  /** As the description writes it: `/v1/locks/{key}`. */
  readonly path: string
  /** The last part of the path is the rest of it, slashes included, as keys have them. */
  readonly rest?: boolean
  /** Its name for programs. */
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
  /** Problems that it tells beside those that every route can. */
  readonly problems?: readonly number[]
  /** `Idempotency-Key` is accepted. */
  readonly repeatable?: boolean
  handle(call: Call): Promise<unknown>
}

/** What the routes of one server have in common. */
export interface Around {
  readonly clock: Clock
  readonly random: Random
  readonly options: HttpOptions
}

/** One request, let in and checked. */
export interface Call extends Around {
  readonly principal: Principal
  /** The store as whoever asks may use it. */
  readonly store: LeaseStore
  /** What the server does with their leases on its own account. */
  readonly acts: ServerActs
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, never>>
  readonly body: unknown
  /** Made from the Idempotency-Key; what was done under it may have been told to somebody. */
  readonly request: RequestId | undefined
  /** Header by its name in small letters. */
  header(name: string): string | undefined
  /** Whoever asked has gone: with an Idempotency-Key, all who asked with it. */
  readonly gone: boolean
  /** Aborted when they go, may do nothing any more, or the server stops. */
  readonly signal: AbortSignal
  /** A client on the store for what the recipes do within this one request. */
  leasehold<Result>(work: (leasehold: Leasehold) => Promise<Result>): Promise<Result>
  /** What is kept for this principal from one request to the next. */
  office(): Promise<Office>
  /** Answers as a stream of events. */
  stream(): EventSink
}

/** Where a stream of events is written. */
export interface EventSink {
  /** One event; `id` is what the reader resumes after. */
  send(event: string, data: unknown, id?: number): void
  end(): void
  /** Called once, when nobody reads any more. */
  closed: () => void
}
