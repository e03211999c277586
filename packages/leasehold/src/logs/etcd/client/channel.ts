import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import type { SecureContextOptions } from 'node:tls'
import type { Clock } from '../../../port/index.ts'
import { Message } from './protobuf.ts'

export interface ChannelOptions {
  /** Addresses with `http:` or `https:`, one for each member of the service. */
  readonly endpoints: readonly string[]
  readonly tls: SecureContextOptions | undefined
  /** How long a call may take in total, in milliseconds. */
  readonly timeout: number
  /** How long a call waits for one member before it tries the next, in milliseconds. */
  readonly memberTimeout: number
  readonly clock: Clock
}

type Headers = Readonly<Record<string, string>>

export interface Stream {
  write(message: Buffer): void
  /** Ends the stream without a call of `ended`. */
  close(): void
  /** Ends the stream as if the member had failed: `ended` is called. */
  fail(error: Error): void
}

/** The service answered with a gRPC status other than 0, which is in `code`. */
export class GrpcError extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

/** The codes of a member that cannot serve now. All other codes are about the call itself. */
const MEMBER_FAILED = [4, 14]
const WINDOW_BYTES = 16 << 20
const SESSION = {
  maxSessionMemory: 64,
  settings: { enablePush: false, initialWindowSize: WINDOW_BYTES },
}

/**
 * A gRPC client on `node:http2`. All calls go to one member until it fails; the next call goes to the
 * next member. An open channel does not keep the process running; a call does.
 */
export class Channel {
  readonly #options: ChannelOptions
  #session: ClientHttp2Session | undefined
  #member = 0
  #calls = 0
  #closed = false

  constructor(options: ChannelOptions) {
    this.#options = options
  }

  /**
   * Sends a request and waits for its answer. A `change` is sent once, because it may have been
   * carried out; a `read` is sent to each member in turn, and so is a `long` read, which may take
   * the whole timeout. Rejected with a `GrpcError`, or with another error if no answer came.
   */
  async call(
    method: string,
    request: Buffer,
    headers: Headers,
    kind: 'change' | 'read' | 'long',
  ): Promise<Message> {
    const { endpoints, timeout, memberTimeout, clock } = this.#options
    const deadline = clock.now() + timeout
    for (let tries = 1; ; tries++) {
      const wait = Math.min(kind === 'long' ? timeout : memberTimeout, deadline - clock.now())
      try {
        return await this.#send(method, request, headers, wait)
      } catch (error) {
        const isAnswer = error instanceof GrpcError && !MEMBER_FAILED.includes(error.code)
        if (isAnswer || kind === 'change' || tries === endpoints.length) throw error
        if (this.#closed || clock.now() >= deadline) throw error
      }
    }
  }

  /** Opens a stream with its first message. `ended` is called once, with the cause. */
  stream(
    method: string,
    request: Buffer,
    headers: Headers,
    received: (message: Message) => void,
    ended: (error: Error) => void,
  ): Stream {
    const { session, stream } = this.#open(method, headers)
    let isOpen = true
    receive(stream, received, (error) => {
      if (!isOpen) return
      if (error) this.#leave(session)
      ended(error ?? new Error('the service ended the stream'))
    })
    stream.write(framed(request))
    return {
      write: (message) => void stream.write(framed(message)),
      fail: (error) => void stream.destroy(error),
      close: () => {
        isOpen = false
        stream.destroy()
      },
    }
  }

  /** Rejects open calls and ends streams. */
  close(): void {
    this.#closed = true
    this.#session?.destroy()
  }

  #send(method: string, request: Buffer, headers: Headers, wait: number): Promise<Message> {
    const { clock } = this.#options
    return new Promise((resolve, reject) => {
      const { session, stream } = this.#open(method, headers)
      let answer: Message | undefined
      const late = () => stream.destroy(new Error(`no answer within ${Math.round(wait)} ms`))
      // After a stall of this process, read an answer that has already arrived first.
      const timer = clock.timer(clock.now() + wait, () => clock.defer(late), true)
      const keep = (message: Message) => {
        answer = message
      }
      if (this.#calls++ === 0) session.ref()
      receive(stream, keep, (error) => {
        timer.cancel()
        if (--this.#calls === 0) session.unref()
        const isAnswer = error instanceof GrpcError && !MEMBER_FAILED.includes(error.code)
        if (error && !isAnswer) this.#leave(session)
        if (answer && !error) resolve(answer)
        else reject(error ?? new Error('the answer is empty'))
      })
      stream.end(framed(request))
    })
  }

  #open(method: string, headers: Headers) {
    if (this.#closed) throw new Error('the channel is closed')
    const { endpoints, tls } = this.#options
    const session =
      this.#session ?? connect(endpoints[this.#member % endpoints.length]!, { ...tls, ...SESSION })
    if (this.#session === undefined) {
      this.#session = session
      // Each stream gets the error too.
      session.on('error', () => {})
      session.on('goaway', () => this.#leave(session))
      session.on('close', () => this.#leave(session))
      session.on('connect', () => session.destroyed || session.setLocalWindowSize(WINDOW_BYTES))
      session.unref()
    }
    const stream = session.request({
      ':method': 'POST',
      ':path': method,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...headers,
    })
    return { session, stream }
  }

  /** The member behind this session has failed. */
  #leave(session: ClientHttp2Session): void {
    if (session !== this.#session) return
    this.#session = undefined
    this.#member++
    session.destroy()
  }
}

/** Puts gRPC's five-byte header before a message: not compressed, and its length. */
function framed(message: Buffer): Buffer {
  const frame = Buffer.alloc(5 + message.length)
  frame.writeUInt32BE(message.length, 1)
  frame.set(message, 5)
  return frame
}

/** Calls `received` for each message, and then `ended` once, without an error if the status was 0. */
function receive(
  stream: ClientHttp2Stream,
  received: (message: Message) => void,
  ended: (error: Error | undefined) => void,
): void {
  let chunks: Buffer[] = []
  let size = 0
  let failure: Error | undefined
  let isOver = false
  const end = (error: Error | undefined) => {
    if (!isOver) ended(error)
    isOver = true
  }
  // A call that fails at once has its status in the headers.
  const status = (headers: Readonly<Record<string, unknown>>) => {
    const code = headers['grpc-status']
    if (code === '0') end(undefined)
    else if (code !== undefined) {
      end(new GrpcError(Number(code), decodeURIComponent(String(headers['grpc-message'] ?? ''))))
    } else if (headers[':status'] !== undefined && headers[':status'] !== 200) {
      end(new GrpcError(12, `HTTP status ${headers[':status']}: this is not a gRPC service`))
    }
  }
  stream.on('response', status)
  stream.on('trailers', status)
  stream.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    size += chunk.length
    for (let length = lengthOf(chunks, size); size >= length; length = lengthOf(chunks, size)) {
      const bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
      chunks = [bytes.subarray(length)]
      size -= length
      try {
        if (!isOver) received(new Message(bytes.subarray(5, length)))
      } catch (error) {
        stream.destroy(error as Error)
      }
    }
  })
  stream.on('error', (error) => {
    failure = error
  })
  stream.on('close', () => end(failure ?? new Error('the connection was closed')))
}

/** The length of the first message with its header; more than `size` if it is not known yet. */
function lengthOf(chunks: readonly Buffer[], size: number): number {
  if (size < 5) return 5
  const start = chunks[0]!.length >= 5 ? chunks[0]! : Buffer.concat(chunks)
  return 5 + start.readUInt32BE(1)
}
