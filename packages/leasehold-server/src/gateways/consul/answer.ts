/** An answer of the API. */
export interface Answer {
  readonly status?: number
  /** For `X-Consul-Index`. */
  readonly index?: number | undefined
  /** An object is written as JSON; a string and bytes as they are. */
  readonly body: unknown
  readonly type?: string | undefined
  /** For `X-Consul-Reason`. */
  readonly reason?: string | undefined
  /** The bytes are those of a caller: a browser must not interpret them. */
  readonly isRaw?: true
}

/** A refusal with Consul's own words, which clients match. */
export class ConsulError extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** A request, with the parts that routes need. */
export interface Call {
  readonly method: string
  /** The path after `/v1/`, decoded segment by segment. */
  readonly path: string
  readonly query: URLSearchParams
  readonly body: Buffer
  /** Calls back when the client is gone or the server stops, until the returned function is called. */
  readonly whenGone: (callback: () => void) => () => void
}

/** The body as JSON with field names in lower case: Consul ignores their case. */
export function jsonBody({ body }: Call): Readonly<Record<string, unknown>> {
  if (body.length === 0) return {}
  let value: unknown
  try {
    value = JSON.parse(body.toString())
  } catch (error) {
    throw decodeFailed((error as Error).message)
  }
  return value === null ? {} : fieldsOf(value, 'the body')
}

/** The fields of an object, in lower case. */
export function fieldsOf(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw decodeFailed(`${what} must be an object`)
  }
  return lowered(value) as Record<string, unknown>
}

export function decodeFailed(why: string): ConsulError {
  return new ConsulError(400, `Request decode failed: ${why}`)
}

/** An object with its own field names in lower case; anything else unchanged. */
export function lowered(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name.toLowerCase(), each]))
}

export function flag(query: URLSearchParams, name: string): boolean {
  return query.has(name) && query.get(name) !== 'false'
}
