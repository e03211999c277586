import { problemFor } from '../../http/index.ts'

export const GROUP = 'coordination.k8s.io'
export const VERSION = `${GROUP}/v1`
export const RESOURCE = 'leases'

/** The answer to a request that failed, and to a deletion. */
export interface Status {
  readonly kind: 'Status'
  readonly apiVersion: 'v1'
  readonly metadata: Readonly<Record<string, never>>
  readonly status: 'Success' | 'Failure'
  readonly message?: string | undefined
  readonly reason?: string | undefined
  readonly details?: StatusDetails | undefined
  readonly code?: number | undefined
}

export interface StatusDetails {
  readonly name?: string | undefined
  readonly group?: string | undefined
  readonly kind?: string | undefined
  readonly uid?: string | undefined
  readonly causes?: readonly { reason: string; message: string; field: string }[] | undefined
  readonly retryAfterSeconds?: number | undefined
}

/** The reasons that clients compare, by the status that has no better one. */
const REASONS: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  406: 'NotAcceptable',
  409: 'Conflict',
  410: 'Expired',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
}
/** The longest message. It may quote what a client has sent. */
const MESSAGE_MAX = 1000

/** A refusal with the words of Kubernetes. */
export class Refusal extends Error {
  readonly code: number
  readonly reason: string | undefined
  readonly details: StatusDetails | undefined

  constructor(code: number, message: string, details?: StatusDetails, reason = REASONS[code]) {
    super(message)
    this.code = code
    this.reason = reason
    this.details = details
  }
}

export function badRequest(message: string): Refusal {
  return new Refusal(400, message)
}

export function notFound(name: string): Refusal {
  return new Refusal(404, `${RESOURCE}.${GROUP} "${name}" not found`, detailsOf(name))
}

export function alreadyExists(name: string): Refusal {
  const message = `${RESOURCE}.${GROUP} "${name}" already exists`
  return new Refusal(409, message, detailsOf(name), 'AlreadyExists')
}

export function conflict(name: string, why: string): Refusal {
  const message = `${RESOURCE}.${GROUP} "${name}" was not changed: ${why}. Read it again and retry`
  return new Refusal(409, message, detailsOf(name))
}

/** A field with a value that is not allowed. `what` says which one is. */
export function invalidField(name: string, field: string, what: string): Refusal {
  const causes = [{ reason: 'FieldValueInvalid', message: what, field }]
  const message = `Lease.${GROUP} "${name}" is invalid: ${field}: ${what}`
  return new Refusal(422, message, { ...detailsOf(name), causes })
}

/** The store no longer has the changes after a revision: the client lists again. */
export function expired(): Refusal {
  return new Refusal(
    410,
    'resourceVersion is too old: the changes since then are not kept. List again, and watch from the resourceVersion of the list',
  )
}

export function success(name: string, uid: string): Status {
  const details = { ...detailsOf(name), uid }
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', details }
}

/** The status of any error, of this gateway, of the server or of the framework. */
export function statusOf(error: unknown): Status & { readonly code: number } {
  const { code, message, reason, details } = error instanceof Refusal ? error : refusalOf(error)
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: message.slice(0, MESSAGE_MAX),
    reason,
    details,
    code,
  }
}

function refusalOf(error: unknown): Refusal {
  const { status, detail, outcome } = problemFor(error)
  // Clients of Kubernetes know that after a timeout a change may have been made.
  const code = outcome === 'unknown' ? 504 : REASONS[status] === undefined ? 500 : status
  return new Refusal(code, detail, code === 429 ? { retryAfterSeconds: 1 } : undefined)
}

function detailsOf(name: string): StatusDetails {
  return { name, group: GROUP, kind: RESOURCE }
}
