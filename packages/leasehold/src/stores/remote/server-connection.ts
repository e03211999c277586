import type { SecureContextOptions } from 'node:tls'
import { backoff, type Clock, LeaseholdError, type Random, type Timer } from '../../port/index.ts'
import { errorFrom } from './answers.ts'
import {
  CLOSE,
  type Hello,
  PROTOCOL,
  type PushMessage,
  type ServerMessage,
  type Welcome,
} from './protocol.ts'
import type { WebSocketEvents, WebSocketOptions } from './web-socket.ts'

const RETRY_MIN_MS = 20
const RETRY_MAX_MS = 2000
/** A stream that was open for this long was good: the next failure starts a new backoff. */
const GOOD_MS = 1000
/** More than a server queues for one client. A larger message could not be a string at all. */
const MESSAGE_BYTES = 128 << 20

/** A stream that is open or being opened. */
export interface StreamSocket {
  /** False if there is no room for another message: wait for `drained`. */
  send(text: string): boolean
  close(code: number, reason: string): void
}

export type OpenSocket = (
  url: URL,
  options: WebSocketOptions,
  events: WebSocketEvents,
) => StreamSocket

export interface ServerConnectionOptions {
  readonly url: URL
  readonly socket: OpenSocket
  readonly clock: Clock
  readonly random: Random
  readonly timeout: number
  readonly silence: number
  readonly headers: Readonly<Record<string, string>> | undefined
  readonly tls: SecureContextOptions | undefined
  readonly hello: Hello
}

export interface ServerConnectionEvents {
  /** The stream is open, and the server has sent its welcome. */
  up(welcome: Welcome): void
  /** It was up, and is no longer. What was sent and not answered on it never will be. */
  down(): void
  answers(messages: readonly ServerMessage[]): void
  /** There is room to send again. */
  drained(): void
  /** There will never be a stream: the server rejects this client. */
  refused(error: LeaseholdError): void
}

/**
 * Keeps a stream to the server open. When one breaks, it opens another with the same identity, after
 * increasing random delays, so that the clients of a restarting server do not all come back at once.
 */
export class ServerConnection {
  /** Why there is no stream. */
  cause = 'it was not tried yet'
  readonly #options: ServerConnectionOptions
  readonly #events: ServerConnectionEvents
  #socket: StreamSocket | undefined
  #timer: Timer | undefined
  #state: 'connecting' | 'up' | 'leaving' | 'over' = 'connecting'
  #upSince = 0
  #failures = 0
  #everUp = false
  #ended: (() => void) | undefined

  constructor(options: ServerConnectionOptions, events: ServerConnectionEvents) {
    this.#options = options
    this.#events = events
  }

  /** Whether something can be sent. */
  get isUp(): boolean {
    return this.#state === 'up'
  }

  connect(): void {
    const { url, clock, random, timeout, silence, headers, tls } = this.#options
    const keepAlive = !this.#everUp
    const limits = { timeout, silence, messageBytes: MESSAGE_BYTES, keepAlive }
    const socket = this.#options.socket(
      url,
      { clock, random, headers, tls, ...limits },
      {
        opened: () => this.#greet(),
        text: (text) => this.#hear(text),
        drained: () => this.#events.drained(),
        closed: (code, reason) => this.#closed(code, reason),
      },
    )
    this.#socket = socket
  }

  /** Sends a frame, if `isUp`. False if there is no room for another one yet: wait for `drained`. */
  send(messages: string): boolean {
    return this.#socket!.send(messages)
  }

  /** Fulfilled when the stream is closed. */
  close(): Promise<void> {
    this.#timer?.cancel()
    this.#state = 'over'
    const socket = this.#socket
    if (socket === undefined) return Promise.resolve()
    return new Promise((resolve) => {
      this.#ended = resolve
      socket.close(CLOSE.done, 'the client was closed')
    })
  }

  #greet(): void {
    this.#socket!.send(JSON.stringify([['hello', PROTOCOL, this.#options.hello]]))
    const { clock, timeout } = this.#options
    const giveUp = () => this.#socket!.close(CLOSE.malformed, 'there was no welcome')
    // A caller waits for the first stream. An open stream does not keep the process running.
    this.#timer = clock.timer(clock.now() + timeout, giveUp, !this.#everUp)
  }

  #hear(text: string): void {
    const messages = messagesIn(text)
    if (messages === undefined) {
      this.#socket!.close(CLOSE.malformed, 'a frame is no JSON array of messages')
      return
    }
    if (this.#state === 'connecting') this.#hearFirst(messages)
    else {
      this.#events.answers(messages)
      // It is the last message of its frame: nothing sent after it is carried out.
      if (this.#state === 'up' && messages.at(-1)?.[0] === 'bye') this.#state = 'leaving'
    }
  }

  #hearFirst(messages: readonly ServerMessage[]): void {
    const [first, ...others] = messages as readonly PushMessage[]
    this.#timer!.cancel()
    if (first?.[0] === 'welcome' && first[1] === PROTOCOL && isWelcome(first[2])) {
      this.#state = 'up'
      this.#everUp = true
      this.#upSince = this.#options.clock.now()
      this.#events.up(first[2])
      this.#events.answers(others)
    } else if (first?.[0] === 'refused') {
      this.#state = 'over'
      this.#events.refused(errorFrom(first[1], first[2]))
      this.#socket?.close(CLOSE.done, '')
    } else this.#socket!.close(CLOSE.malformed, 'there was no welcome')
  }

  #closed(code: number, reason: string): void {
    const { clock } = this.#options
    const wasUp = this.#state === 'up' || this.#state === 'leaving'
    this.#timer?.cancel()
    this.#socket = undefined
    this.cause = reason || `it was closed with ${code}`
    if (this.#state === 'over') {
      this.#ended?.()
      return
    }
    if (code === CLOSE.unauthenticated) {
      this.#state = 'over'
      // What was sent will not be answered: it is settled now, and not when it is late.
      if (wasUp) this.#events.down()
      this.#events.refused(new LeaseholdError('unauthenticated', reason))
      return
    }
    this.#state = 'connecting'
    if (wasUp && clock.now() - this.#upSince >= GOOD_MS) this.#failures = 0
    const wait = backoff(this.#failures++, this.#options.random, RETRY_MIN_MS, RETRY_MAX_MS)
    this.#timer = clock.timer(clock.now() + wait, () => this.connect(), !this.#everUp)
    if (wasUp) this.#events.down()
  }
}

function messagesIn(text: string): readonly ServerMessage[] | undefined {
  try {
    const messages: unknown = JSON.parse(text)
    return Array.isArray(messages) && messages.every(Array.isArray)
      ? (messages as unknown as readonly ServerMessage[])
      : undefined
  } catch {
    return undefined
  }
}

/** Whether it has everything that calls need. */
function isWelcome({ guarantees, limits, stream }: Partial<Welcome>): boolean {
  if (!guarantees?.ttl || !Array.isArray(guarantees.notes) || !limits || !stream) return false
  return [stream.frameBytes, stream.frameMessages, stream.inFlight].every((limit) => limit > 0)
}

export function unreachable(where: string, cause: string, ms: number): LeaseholdError {
  return new LeaseholdError(
    'timeout',
    `no lease server was reached at ${where} within ${ms} ms (${cause}): start one with 'leasehold serve', or correct the address`,
  )
}
