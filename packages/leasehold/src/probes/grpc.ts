import { type ClientHttp2Stream, connect, constants } from 'node:http2'
import type { Socket } from 'node:net'
import type { CheckTarget, ProbeResult } from '../recipes/index.ts'
import { Refused } from './connection.ts'

/**
 * Calls grpc.health.v1.Health/Check over a connection. The two messages are so small that they are
 * encoded by hand: a request is `{ 1: service }`, a response `{ 1: status }`.
 */
const ANSWER_MAX_BYTES = 1024
const STATUS = ['UNKNOWN', 'SERVING', 'NOT_SERVING', 'SERVICE_UNKNOWN']

export async function askGrpc(
  socket: Socket,
  { scheme, host, port, path }: CheckTarget,
  signal: AbortSignal,
): Promise<ProbeResult> {
  const name = host.includes(':') ? `[${host}]` : host
  const authority = `${name}:${port}`
  const isSecure = scheme === 'grpcs'
  const session = connect(`${isSecure ? 'https' : 'http'}://${authority}`, {
    // The checked connection, and no other.
    createConnection: () => socket,
    maxSessionMemory: 1,
    settings: { enablePush: false },
  })
  try {
    return await new Promise<ProbeResult>((resolve, reject) => {
      session.on('error', reject)
      session.on('close', () => reject(new Refused('the connection was closed')))
      signal.addEventListener('abort', () => session.destroy(), { once: true })
      const stream = session.request({
        [constants.HTTP2_HEADER_METHOD]: 'POST',
        [constants.HTTP2_HEADER_PATH]: '/grpc.health.v1.Health/Check',
        [constants.HTTP2_HEADER_SCHEME]: isSecure ? 'https' : 'http',
        [constants.HTTP2_HEADER_AUTHORITY]: authority,
        'content-type': 'application/grpc',
        te: 'trailers',
        'user-agent': 'leasehold-health-check',
      })
      read(stream, resolve, reject)
      stream.end(requestFor(decodeURIComponent(path.slice(1))))
    })
  } finally {
    session.destroy()
  }
}

function read(
  stream: ClientHttp2Stream,
  resolve: (result: ProbeResult) => void,
  reject: (error: Error) => void,
): void {
  let answer = Buffer.alloc(0)
  let code = ''
  const noteStatus = (headers: Readonly<Record<string, unknown>>) => {
    if (headers['grpc-status'] !== undefined) code = String(headers['grpc-status'])
  }
  stream.on('error', reject)
  // A call that fails at once sends its trailers instead of headers.
  stream.on('response', noteStatus)
  stream.on('trailers', noteStatus)
  stream.on('data', (chunk: Buffer) => {
    answer = Buffer.concat([answer, chunk])
    if (answer.length > ANSWER_MAX_BYTES) reject(new Refused('its answer is too long'))
  })
  stream.on('end', () => resolve(resultOf(code, answer)))
}

function resultOf(code: string, answer: Buffer): ProbeResult {
  if (code !== '0') {
    const known = /^\d{1,2}$/.test(code)
    const note = known ? `gRPC status ${code}` : 'it does not answer with gRPC'
    return { status: 'critical', note }
  }
  const status = statusIn(answer)
  if (status === 1) return { status: 'passing', note: '' }
  return { status: 'critical', note: `gRPC health: ${STATUS[status] ?? 'not readable'}` }
}

/** A message with its frame of five bytes: not compressed, and its length. */
function requestFor(service: string): Buffer {
  const name = Buffer.from(service)
  // Field 1, a string. Its length is below 128, or takes two bytes.
  const length = name.length < 128 ? [name.length] : [(name.length & 127) | 128, name.length >> 7]
  const message = name.length === 0 ? name : Buffer.from([0x0a, ...length, ...name])
  const frame = Buffer.alloc(5)
  frame.writeUInt32BE(message.length, 1)
  return Buffer.concat([frame, message])
}

/** The status in a response: field 1, a number. Without the field: 0; without a message: -1. */
function statusIn(answer: Buffer): number {
  if (answer.length < 5 || answer[0] !== 0) return -1
  const message = answer.subarray(5, 5 + answer.readUInt32BE(1))
  if (message.length === 0) return 0
  return message[0] === 0x08 && message.length >= 2 ? message[1]! : -1
}
