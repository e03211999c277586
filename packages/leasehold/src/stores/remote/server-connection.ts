import type { SecureContextOptions } from 'node:tls'
import {
  backoff,
  type Clock,
  formatDuration,
  LeaseholdError,
  type Random,
  type Timer,
} from '../../port/index.ts'
import { errorFrom } from './answers.ts'
import {
  CLOSE,
  type Hello,
  PROTOCOL,
  type PushMessage,
  type ServerMessage,
  type Welcome,
} from './protocol.ts'
import { messagesIn } from './server-messages.ts'
import { tryServer } from './server-trial.ts'
import type { WebSocketEvents, WebSocketOptions } from './web-socket.ts'

const RETRY_MIN_MS = 20
const RETRY_MAX_MS = 2000
/** A stream that was open for this long was good: the next failure starts a new backoff. */
const GOOD_MS = 1000
/** How often the first server is tried while another one is in use: less often as it stays away. */
const RETURN_MIN_MS = 2000
const RETURN_MAX_MS = 30_000
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
  /** One server, or several that serve the same engine. */
  readonly urls: readonly URL[]
  readonly socket: OpenSocket
  readonly clock: Clock
  readonly random: Random
  readonly timeout: number
  readonly silence: number
  readonly headers: Readonly<Record<string, string>> | undefined
  readonly tls: SecureContextOptions | undefined
  readonly hello: Hello
  /** Whether a grant that does not say is tied to the connection. */
  readonly tiesByDefault: boolean
}

export interface ServerConnectionEvents {
  /** The stream is open, and the server has sent its welcome. */
  up(welcome: Welcome): void
  /** It was up, and is no longer. What was sent and not answered on it never will be. */
  down(): void
  answers(messages: readonly ServerMessage[]): void
  /** There is room to send again. */
  drained(): void
  /** Whether calls were sent that are not answered yet. */
  hasCalls(): boolean
  /** There will never be a stream: the server rejects this client. */
  refused(error: LeaseholdError): void
}

/**
 * Keeps a stream to the server open. When one breaks, it opens another with the same identity, after
 * increasing random delays, so that the clients of a restarting server do not all come back at once.
 * If there are several servers, each failure leads to the next one, and the first again after the
 * last. While it uses another server than the first, it tries the first now and then, and returns to
 * it when it works: so the servers of a fleet have the clients that were meant for them.
 */
export class ServerConnection {
  /** Why there is no stream. */
  cause = 'it has not answered yet'
  readonly #options: ServerConnectionOptions
  readonly #events: ServerConnectionEvents
  #socket: StreamSocket | undefined
  #timer: Timer | undefined
  #state: 'connecting' | 'up' | 'leaving' | 'over' = 'connecting'
  #upSince = 0
  #failures = 0
  /** The position of the server that it uses or tries. */
  #at = 0
  #everUp = false
  /** The id of the server process that is used. */
  #server: string | undefined
  /** Cancels what comes next of a return: the next trial, the trial, or its end. */
  #stopReturn: (() => void) | undefined
  #trials = 0
  /** The first server works: go there when the calls in flight are answered. */
  #returning = false
  #ended: (() => void) | undefined

  constructor(options: ServerConnectionOptions, events: ServerConnectionEvents) {
    this.#options = options
    this.#events = events
  }

  /** The server that it uses or tries. */
  get url(): URL {
    return this.#options.urls[this.#at]!
  }

  /** How long one of several servers may take to open the stream: longer in each round. */
  #timeoutOfOne(): number {
    const { urls, timeout, silence } = this.#options
    const rounds = 1 + Math.floor(this.#failures / urls.length)
    return Math.min(timeout, 2 * silence * rounds)
  }

  /** Whether something can be sent. */
  get isUp(): boolean {
    return this.#state === 'up'
  }

  connect(): void {
    const { clock, random, urls, silence, headers, tls } = this.#options
    // The kernel of a frozen server accepts connections, so the next one must not wait for long.
    const timeout = urls.length === 1 ? this.#options.timeout : this.#timeoutOfOne()
    const keepAlive = !this.#everUp
    const limits = { timeout, silence, messageBytes: MESSAGE_BYTES, keepAlive }
    const socket = this.#options.socket(
      this.url,
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

  /** Call it when answers have arrived. */
  answered(): void {
    if (this.#returning && !this.#events.hasCalls()) this.#return()
  }

  /** Fulfilled when the stream is closed. */
  close(): Promise<void> {
    this.#timer?.cancel()
    this.#stopReturn?.()
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
      this.#server = first[2].server
      if (this.#at === 0) this.#trials = 0
      else this.#tryFirstLater()
      this.#events.up(first[2])
      this.#events.answers(others)
    } else if (first?.[0] === 'refused') {
      this.#state = 'over'
      this.#events.refused(errorFrom(first[1], first[2]))
      this.#socket?.close(CLOSE.done, '')
    } else this.#socket!.close(CLOSE.malformed, 'there was no welcome')
  }

  #tryFirstLater(): void {
    const { clock, random, urls } = this.#options
    const wait = backoff(this.#trials++, random, RETURN_MIN_MS, RETURN_MAX_MS)
    const timer = clock.timer(clock.now() + wait, () => {
      this.#stopReturn = tryServer(urls[0]!, this.#options, (server) => {
        if (this.#state !== 'up') return
        // Both addresses may lead to one server.
        if (server === undefined || server === this.#server) this.#tryFirstLater()
        else this.#startReturn()
      })
    })
    this.#stopReturn = () => timer.cancel()
  }

  /**
   * Sends nothing more here, so that no call is interrupted. But a call that this server does not
   * answer must not keep all others waiting: it is sent again to the first server.
   */
  #startReturn(): void {
    const { clock, silence } = this.#options
    this.#returning = true
    this.#state = 'leaving'
    if (!this.#events.hasCalls()) {
      this.#return()
      return
    }
    const timer = clock.timer(clock.now() + silence, () => this.#return())
    this.#stopReturn = () => timer.cancel()
  }

  #return(): void {
    this.#socket?.close(CLOSE.moved, 'the client returns to its first server')
  }

  #closed(code: number, reason: string): void {
    const { clock } = this.#options
    const wasUp = this.#state === 'up' || this.#state === 'leaving'
    this.#timer?.cancel()
    this.#stopReturn?.()
    this.#socket = undefined
    const why = reason || `it was closed with ${code}`
    this.cause = this.#options.urls.length > 1 ? `${this.url.host}: ${why}` : why
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
    const { length } = this.#options.urls
    // Each round over all servers waits longer than the one before.
    const round = Math.floor(this.#failures++ / length)
    const returns = this.#returning
    this.#returning = false
    this.#at = returns ? 0 : (this.#at + 1) % length
    const { random } = this.#options
    const wait = returns ? 0 : backoff(round, random, RETRY_MIN_MS, RETRY_MAX_MS)
    this.#timer = clock.timer(clock.now() + wait, () => this.connect(), !this.#everUp)
    if (wasUp) this.#events.down()
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
    `no lease server was reached at ${where} within ${formatDuration(ms)} (${cause}): start one with 'leasehold serve', or correct the address`,
  )
}
