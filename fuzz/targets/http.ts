import { connect } from 'node:net'
import { type Failure, showsStack } from '../failure.ts'
import {
  hostile,
  hostileText,
  type Json,
  mutateBytes,
  mutateJson,
  mutateString,
} from '../mutate.ts'
import type { Random } from '../random.ts'
import type { Runner, Target } from '../target.ts'
import { expand, lengthOf, type Text } from '../text.ts'
import { describedRequests } from './described-requests.ts'
import { type Place, SENDERS, type Sender, ServerRunner } from './server-runner.ts'

export interface HttpRequest {
  readonly method: string
  readonly path: string
  readonly headers?: readonly (readonly [string, string])[]
  readonly body?: Text
}

/** Requests on one connection, or arbitrary bytes in base64. */
export interface HttpInput {
  readonly sender: Sender
  readonly requests?: readonly HttpRequest[]
  readonly raw?: readonly string[]
}

const ANSWER_MS = 10_000
const REPLY_MAX = 1 << 20
const REQUESTS_MAX = 6
const METHODS = ['GET', 'POST', 'PUT', 'DELETE', 'HEAD', 'OPTIONS', 'PATCH', 'TRACE', 'CONNECT']
const MORE_PATHS = [
  '/',
  '/healthz',
  '/readyz',
  '/metrics',
  '/openapi.json',
  '/docs',
  '/dashboard/feed',
  '/dashboard/sign-in',
  '/v1/stream',
  '/v1/',
]

export const httpTarget: Target<HttpInput> = {
  name: 'http',
  start: (coverage): Promise<Runner<HttpInput>> => new ServerRunner(coverage, send).prepared(),
  generate: (random) => ({ sender: random.pick(SENDERS), requests: [request(random)] }),
  mutate,
}

/** A request from the description of the API, with its parameters filled in. */
function request(random: Random): HttpRequest {
  if (random.oneIn(8)) return { method: random.pick(METHODS), path: random.pick(MORE_PATHS) }
  const { method, path, parameters, body } = random.pick(describedRequests())
  const fill = (name: string) => {
    const given = random.oneIn(8) ? hostileText(random).slice(0, 9000) : word(name, random)
    return encodeURIComponent(given.toWellFormed())
  }
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => fill(name))
  const query = parameters.filter(() => random.oneIn(2)).map((name) => `${name}=${fill(name)}`)
  const target = query.length > 0 ? `${filled}?${query.join('&')}` : filled
  if (body === undefined) return { method, path: target }
  const json = random.oneIn(3) ? mutateJson(body as Json, random, () => hostile(random)) : body
  return { method, path: target, body: JSON.stringify(json) }
}

function word(name: string, random: Random): string {
  if (name === 'lease') return '$lease'
  if (name === 'token') return '$token'
  if (/ttl|wait|for|grace/i.test(name)) return random.pick(['1s', '60000', '50ms', '0'])
  return random.pick(['fuzz/a', 'fuzz/b', 'fuzz/c/d', '1', 'true', 'shared', 'x'])
}

function mutate(input: HttpInput, other: HttpInput, random: Random): HttpInput {
  if (random.oneIn(8)) return { ...input, sender: random.pick(SENDERS) }
  if (input.raw !== undefined) {
    const at = random.below(Math.max(1, input.raw.length))
    const bytes = Buffer.from(input.raw[at] ?? '', 'base64')
    return {
      ...input,
      raw: input.raw.with(
        Math.min(at, input.raw.length - 1),
        mutateBytes(bytes, random).toString('base64'),
      ),
    }
  }
  const requests = input.requests ?? []
  if (random.oneIn(10) || requests.length === 0) {
    const bytes = requests.map((each) => bytesOf(each, undefined, 'localhost', true))
    return {
      sender: input.sender,
      raw: [
        Buffer.concat(bytes)
          .subarray(0, 1 << 16)
          .toString('base64'),
      ],
    }
  }
  const at = random.below(requests.length)
  if (random.oneIn(4)) {
    const added = random.oneIn(2) && other.requests ? other.requests : [request(random)]
    return { ...input, requests: [...requests, ...added].slice(-REQUESTS_MAX) }
  }
  return { ...input, requests: requests.with(at, mutateRequest(requests[at]!, random)) }
}

function mutateRequest(made: HttpRequest, random: Random): HttpRequest {
  const { path, headers = [], body } = made
  switch (random.below(8)) {
    case 0:
      return { ...made, method: random.pick(METHODS) }
    case 1:
      return { ...made, path: mutateString(path, random).replaceAll(/[\s\u0080-\uffff]/g, '%') }
    case 2:
      return { ...made, headers: [...headers, header(random)] }
    case 3:
      return {
        ...made,
        path: `${path}${path.includes('?') ? '&' : '?'}${random.pick(['limit', 'after', 'wait', 'ttl', 'a', 'start'])}=${encodeURIComponent(hostileText(random).slice(0, 3000).toWellFormed())}`,
      }
    case 4:
      if (random.oneIn(10))
        return {
          ...made,
          body: { before: '{"holder":"', repeat: 'x', times: random.size(3 << 20), after: '"}' },
        }
      return { ...made, body: JSON.stringify(hostile(random)) }
    default: {
      if (typeof body !== 'string') return { ...made, body: '{}' }
      if (random.oneIn(4)) return { ...made, body: mutateString(body, random) }
      try {
        return {
          ...made,
          body: JSON.stringify(mutateJson(JSON.parse(body) as Json, random, () => hostile(random))),
        }
      } catch {
        return { ...made, body: mutateString(body, random) }
      }
    }
  }
}

function header(random: Random): readonly [string, string] {
  return random.pick([
    [
      'content-type',
      random.pick(['text/plain', 'application/json; charset=x', 'multipart/form-data', '']),
    ],
    ['content-length', random.pick(['0', '1', '-1', '99999999', 'x', '1, 2'])],
    ['transfer-encoding', random.pick(['chunked', 'gzip, chunked', 'identity'])],
    ['idempotency-key', random.pick(['a', '', 'x'.repeat(5000)])],
    ['authorization', random.pick(['Bearer', 'Bearer lh_', 'Basic eDp5', 'Bearer a b c'])],
    ['host', random.pick(['', 'example.com', '[::1', 'localhost:99999', 'a'.repeat(300)])],
    ['origin', random.pick(['null', 'http://example.com', 'http://'])],
    ['cookie', random.pick(['=', 'leasehold-0=x', 'leasehold-7420=..%2f', ';;;='])],
    ['upgrade', random.pick(['websocket', 'h2c'])],
    ['connection', random.pick(['upgrade', 'close', 'keep-alive, upgrade'])],
    ['expect', '100-continue'],
    ['last-event-id', random.pick(['0', '-1', 'x', '9007199254740993'])],
    ['accept', 'text/event-stream'],
  ] as const)
}

function bytesOf(
  { method, path, headers = [], body }: HttpRequest,
  authorization: string | undefined,
  host: string,
  isLast: boolean,
): Buffer {
  const given = new Set(headers.map(([name]) => name))
  const content = Buffer.from(body === undefined ? '' : expand(body))
  const lines = [`${method} ${path} HTTP/1.1`]
  if (!given.has('host')) lines.push(`host: ${host}`)
  if (authorization && !given.has('authorization')) lines.push(`authorization: ${authorization}`)
  if (body !== undefined && !given.has('content-type')) lines.push('content-type: application/json')
  const isFramed = given.has('content-length') || given.has('transfer-encoding')
  if (body !== undefined && !isFramed) lines.push(`content-length: ${content.length}`)
  if (isLast && !given.has('connection')) lines.push('connection: close')
  for (const [name, value] of headers) lines.push(`${name}: ${value}`)
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), content])
}

async function send(
  input: HttpInput,
  placeOf: (sender: Sender) => Place,
): Promise<Failure | undefined> {
  const { url, authorization } = placeOf(input.sender)
  if (input.raw !== undefined) {
    const reply = await exchange(
      url,
      input.raw.map((bytes) => Buffer.from(bytes, 'base64')),
      50,
    )
    return judge(reply, false)
  }
  let known: Known = { lease: '1.1', token: '1' }
  for (const made of input.requests ?? []) {
    if (made.body !== undefined && lengthOf(made.body) > 8 << 20) continue
    const filled = fill(made, known)
    // A request that waits for a lock, or sends less than it announced, gets no answer: that is no
    // hang.
    const mayWait = /wait|events|watch/.test(filled.path) || (filled.headers?.length ?? 0) > 0
    const bytes = bytesOf(filled, authorization, url.host, true)
    const reply = await exchange(url, [bytes], mayWait ? 100 : ANSWER_MS)
    const failure = judge(reply, !mayWait)
    if (failure) return failure
    known = learn(reply.text, known)
  }
  return undefined
}

interface Known {
  readonly lease: string
  readonly token: string
}

function fill(made: HttpRequest, { lease, token }: Known): HttpRequest {
  const put = (text: string) =>
    text.replaceAll(/\$lease|%24lease/g, lease).replaceAll(/\$token|%24token/g, token)
  const { body } = made
  return { ...made, path: put(made.path), ...(typeof body === 'string' && { body: put(body) }) }
}

function learn(text: string, known: Known): Known {
  return {
    lease: /"lease":"([^"]+)"/.exec(text)?.[1] ?? known.lease,
    token: /"token":(\d+)/.exec(text)?.[1] ?? known.token,
  }
}

interface Reply {
  readonly text: string
  readonly isLate: boolean
}

/** Sends bytes and reads until the server closes, enough has arrived, or the timeout is over. */
function exchange(url: URL, chunks: readonly Buffer[], timeoutMs: number): Promise<Reply> {
  return new Promise((resolve) => {
    const socket = connect(Number(url.port), url.hostname)
    const parts: Buffer[] = []
    let size = 0
    const finish = (isLate: boolean) => {
      clearTimeout(timer)
      socket.destroy()
      resolve({ text: Buffer.concat(parts).toString('latin1'), isLate })
    }
    const timer = setTimeout(() => finish(true), timeoutMs)
    socket.on('error', () => {})
    socket.on('close', () => finish(false))
    socket.on('data', (part) => {
      parts.push(part)
      size += part.length
      if (size > REPLY_MAX || part.includes('text/event-stream')) finish(false)
    })
    socket.on('connect', () => {
      for (const chunk of chunks) socket.write(chunk)
    })
  })
}

function judge({ text, isLate }: Reply, mustAnswer: boolean): Failure | undefined {
  const status = /^HTTP\/1\.1 (5\d\d)/m.exec(text)?.[1]
  // 501 is a refusal: the store does not support the request.
  if (status !== undefined && status !== '501') {
    return { kind: 'server-error', detail: text.slice(text.indexOf(`HTTP/1.1 ${status}`), 800) }
  }
  if (showsStack(text)) return { kind: 'stack-trace', detail: text.slice(0, 800) }
  if (mustAnswer && isLate) return { kind: 'hang', detail: `no answer for ${ANSWER_MS} ms` }
  return undefined
}
