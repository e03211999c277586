import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  checkKey,
  DEFAULT_LIMITS,
  isLeaseholdError,
  type LeaseholdError,
  show,
  type Token,
} from '../port/index.ts'
import type { Fence } from './fence.ts'

/**
 * Fences for HTTP: the header `Lease-Token: 17` says which lock a request uses. A request with a
 * stale token never reaches its handler.
 *
 * | the request | is answered with |
 * | --- | --- |
 * | has a stale or malformed token | 412 Precondition Failed |
 * | has no token, but one is required | 428 Precondition Required |
 * | names an invalid resource, such as a path that is too long | 400 Bad Request |
 * | cannot be checked, because the fence cannot be asked | 503 Service Unavailable |
 *
 * The body is `application/problem+json` and gives the reason: `title`, `detail`, `status`,
 * `resource`, and `token` and `highest` if they are known.
 *
 * **Not promised.** The handler runs after the check: while it runs, a request with a newer token
 * may be admitted and finish first. A handler that writes to PostgreSQL or Redis takes the token
 * (`leaseToken(request)`) and checks it again in one step with its write. The default resource is
 * the path as it was sent: if several paths lead to the same thing (other case, trailing slash),
 * give `resource` a function that names the thing.
 */
export interface HttpFenceOptions<Request extends FencedRequest = FencedRequest> {
  /** Names the resource of a request. Default: its path without the query. */
  readonly resource?: ((request: Request) => string) | undefined
  /**
   * Whether a request without a token is answered with 428. Default: unless it only reads (GET, HEAD,
   * OPTIONS). A token that is present is always checked.
   */
  readonly required?: boolean | ((request: Request) => boolean) | undefined
  /** Called with the errors that are answered with 503. It must return quickly and must not throw. */
  readonly onFailure?: ((error: unknown, request: Request) => void) | undefined
}

/** The parts of a request that a fence uses. Requests of Node, Express and Fastify have them. */
export interface FencedRequest {
  readonly method?: string | undefined
  readonly url?: string | undefined
  /** Express: the whole path, whereas `url` is only the part after the router's own path. */
  readonly originalUrl?: string | undefined
  readonly headers: { readonly [name: string]: string | string[] | undefined }
}

/** The body of a refusal. */
export interface Problem {
  readonly title: string
  readonly status: number
  readonly detail: string
  readonly resource?: string | undefined
  readonly token?: Token | undefined
  readonly highest?: Token | undefined
}

/** The parts of Fastify's `reply` that a fence uses. */
export interface FencedReply {
  code(status: number): unknown
  header(name: string, value: string): unknown
  send(body: string): unknown
}

const READS = new Set(['GET', 'HEAD', 'OPTIONS'])
const TOKEN = /^[1-9]\d{0,15}$/
const PROBLEM = 'application/problem+json'

/** The token of a request; `undefined` if it has none, or a malformed one. */
export function leaseToken(request: FencedRequest): Token | undefined {
  const text = request.headers['lease-token']
  const token = typeof text === 'string' && TOKEN.test(text) ? Number(text) : undefined
  return Number.isSafeInteger(token) ? token : undefined
}

/** For plain `node:http`: puts the fence in front of a listener. */
export function nodeFence(
  fence: Fence,
  listener: (request: IncomingMessage, response: ServerResponse) => void,
  options: HttpFenceOptions<IncomingMessage> = {},
): (request: IncomingMessage, response: ServerResponse) => void {
  const guard = expressFence(fence, options)
  return (request, response) => guard(request, response, () => listener(request, response))
}

/** For Express, as middleware: `app.use(expressFence(fence))`. */
export function expressFence<Request extends FencedRequest = FencedRequest>(
  fence: Fence,
  options: HttpFenceOptions<Request> = {},
): (request: Request, response: ServerResponse, next: () => void) => void {
  return (request, response, next) => {
    void judge(fence, request, options).then((problem) => {
      if (!problem) return next()
      response.writeHead(problem.status, { 'content-type': PROBLEM })
      response.end(JSON.stringify(problem))
    })
  }
}

/** For Fastify, as a hook: `app.addHook('preHandler', fastifyFence(fence))`. */
export function fastifyFence<Request extends FencedRequest = FencedRequest>(
  fence: Fence,
  options: HttpFenceOptions<Request> = {},
): (request: Request, reply: FencedReply) => Promise<unknown> {
  return async (request, reply) => {
    const problem = await judge(fence, request, options)
    if (!problem) return undefined
    reply.code(problem.status)
    reply.header('content-type', PROBLEM)
    return reply.send(JSON.stringify(problem))
  }
}

/** What is wrong with a request, if anything. Never rejects: a failure to check is a problem, too. */
async function judge<Request extends FencedRequest>(
  fence: Fence,
  request: Request,
  options: HttpFenceOptions<Request>,
): Promise<Problem | undefined> {
  let resource: string | undefined
  try {
    resource = options.resource ? options.resource(request) : pathOf(request)
    const text = request.headers['lease-token']
    if (text === undefined) return isRequired(request, options) ? missing(resource) : undefined
    const token = leaseToken(request)
    if (token === undefined) return malformed(resource, text)
    const complaint = checkKey(resource, DEFAULT_LIMITS, 'resource')
    if (complaint) return { title: 'Not a resource', status: 400, detail: complaint.message }
    await fence.admit(resource, token)
    return undefined
  } catch (error) {
    if (isLeaseholdError(error, 'stale-token')) return stale(resource, error)
    options.onFailure?.(error, request)
    return {
      title: 'The lease token could not be checked',
      status: 503,
      detail: 'Nothing was done. Send the same request again, with the same token.',
      resource,
    }
  }
}

function isRequired<Request extends FencedRequest>(
  request: Request,
  { required }: HttpFenceOptions<Request>,
): boolean {
  if (required === undefined) return !READS.has(request.method ?? '')
  return typeof required === 'function' ? required(request) : required
}

function pathOf(request: FencedRequest): string {
  return (request.originalUrl ?? request.url ?? '').split(/[?#]/, 1)[0]!
}

function missing(resource: string): Problem {
  const detail = `A request that changes ${show(resource)} needs the token of its lock: send it in the header Lease-Token.`
  return { title: 'A lease token is required', status: 428, detail, resource }
}

function malformed(resource: string, text: string | string[]): Problem {
  const detail = `The header Lease-Token is ${show(text)}: it must be one integer from 1 to ${Number.MAX_SAFE_INTEGER}, the token of the lock.`
  return { title: 'Not a lease token', status: 412, detail, resource }
}

function stale(resource: string | undefined, error: LeaseholdError): Problem {
  const { message: detail, token, highest } = error
  return { title: 'The lease token is stale', status: 412, detail, resource, token, highest }
}
