import type { IncomingMessage, ServerResponse } from 'node:http'
import { isIP } from 'node:net'
import { isLeaseholdError } from 'leasehold/port'
import { type Answer, type Call, ConsulError } from './answer.ts'

/** Consul's own limit for a value. The lease store may have a lower one. */
const BODY_MAX = 512 * 1024
const EMPTY = Buffer.alloc(0)

/** The requests that wait, so that they end with the server. */
export class Waiting {
  readonly #callbacks = new Set<() => void>()
  #isOver = false

  /** Calls back when the response is closed or the server stops, until the returned function is called. */
  whenGone(response: ServerResponse, callback: () => void): () => void {
    if (this.#isOver || response.closed) {
      callback()
      return () => {}
    }
    this.#callbacks.add(callback)
    response.once('close', callback)
    return () => {
      this.#callbacks.delete(callback)
      response.off('close', callback)
    }
  }

  end(): void {
    this.#isOver = true
    for (const callback of [...this.#callbacks]) callback()
  }
}

type Route = (call: Call) => Promise<Answer> | Answer

/** Answers one request. */
export async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  route: Route,
  waiting: Waiting,
): Promise<void> {
  const whenGone: Call['whenGone'] = (callback) => waiting.whenGone(response, callback)
  const answer = await answerTo(request, route, whenGone).catch(refusalOf)
  if (response.closed) return
  const { status = 200, index, reason, body, type, isRaw } = answer
  const isPlain = typeof body === 'string' || Buffer.isBuffer(body)
  const content = isPlain ? body : JSON.stringify(body)
  const length = Buffer.byteLength(content)
  response.writeHead(status, {
    ...(length > 0 && {
      'content-type': type ?? (isPlain ? 'text/plain; charset=utf-8' : 'application/json'),
    }),
    'content-length': length,
    vary: 'Accept-Encoding',
    // Whatever is left of the body would be taken for the next request.
    ...(!request.complete && { connection: 'close' }),
    ...(isRaw && { 'content-security-policy': 'sandbox', 'x-content-type-options': 'nosniff' }),
    'x-consul-default-acl-policy': 'allow',
    ...(reason !== undefined && { 'x-consul-reason': reason }),
    ...(index !== undefined && {
      'x-consul-index': String(index),
      'x-consul-knownleader': 'true',
      'x-consul-lastcontact': '0',
      'x-consul-query-backend': 'blocking-query',
    }),
  })
  response.end(request.method === 'HEAD' ? undefined : content)
}

async function answerTo(
  request: IncomingMessage,
  route: Route,
  whenGone: Call['whenGone'],
): Promise<Answer> {
  refuseBrowsers(request)
  const { method = 'GET', url = '/' } = request
  const body = await bodyOf(request)
  // Not `URL`: it would resolve `..` in keys.
  const target = url.replace(/^https?:\/\/[^/?]*/i, '')
  const at = target.indexOf('?')
  const path = at === -1 ? target : target.slice(0, at)
  if (!path.startsWith('/v1/')) throw new ConsulError(404, 'Invalid URL path: not found')
  const query = new URLSearchParams(at === -1 ? '' : target.slice(at))
  return route({ method, path: decoded(path.slice('/v1/'.length)), query, body, whenGone })
}

/** Without an iterator over the body, which would take longer than the rest of many answers. */
function bodyOf(request: IncomingMessage): Buffer | Promise<Buffer> {
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers
  if (encoding === undefined && (length === undefined || length === '0')) return EMPTY
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    request.on('data', (chunk: Buffer) => {
      size += chunk.length
      if (size <= BODY_MAX) chunks.push(chunk)
      else {
        chunks.length = 0
        reject(new ConsulError(413, `Request body too large, max size: ${BODY_MAX} bytes.`))
      }
    })
    request.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
    request.on('error', reject)
    request.on('close', () => reject(new ConsulError(400, 'the request ended too early')))
  })
}

/**
 * The API has no access rights, so a web page must not reach it through the browser of a user. A page
 * of another origin sends its `Origin`, and one that renames its address to ours a foreign `Host`.
 */
function refuseBrowsers({ headers: { origin, host = '' } }: IncomingMessage): void {
  const name = host.replace(/:\d+$/, '').replace(/^\[|\]$/g, '')
  if (origin === undefined && (name === 'localhost' || isIP(name) !== 0)) return
  throw new ConsulError(403, 'Permission denied: this API is not for web pages')
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    throw new ConsulError(400, 'Invalid URL path: it cannot be decoded')
  }
}

function refusalOf(error: unknown): Answer {
  if (error instanceof ConsulError) return { status: error.status, body: error.message }
  if (isLeaseholdError(error, 'invalid-argument') && /value/.test(error.message)) {
    return { status: 413, body: error.message }
  }
  const isRefused =
    isLeaseholdError(error, 'invalid-argument') || isLeaseholdError(error, 'forbidden')
  const status = isRefused ? 400 : 500
  return { status, body: error instanceof Error ? error.message : String(error) }
}
