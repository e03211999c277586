import type { LeaseStore } from '../../../src/port/index.ts'
import { DEFAULT_LIMITS } from '../../../src/port/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { PROTOCOL, remoteStore } from '../../../src/stores/remote/index.ts'
import type { RemoteStoreOptions, ServerAddress } from '../../../src/stores/remote/options.ts'
import type { OpenSocket } from '../../../src/stores/remote/server-connection.ts'
import type { WebSocketEvents, WebSocketOptions } from '../../../src/stores/remote/web-socket.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { RunningClock } from './running-clock.ts'

export const STREAM = {
  ...{ frameBytes: 1 << 20, frameMessages: 4096, frameValues: 100_000 },
  ...{ inFlight: 1000, watches: 100, silence: 5000 },
}

/** A stream whose server is the test: it receives every frame and sends the answers. */
export class ScriptedStream {
  readonly url: URL
  readonly options: WebSocketOptions
  readonly events: WebSocketEvents
  readonly frames: unknown[][][] = []
  closed: readonly [code: number, reason: string] | undefined
  hasRoom = true
  /** Whether a goodbye is answered at once. */
  isPolite = true

  constructor(url: URL, options: WebSocketOptions, events: WebSocketEvents) {
    this.url = url
    this.options = options
    this.events = events
  }

  send(text: string): boolean {
    this.frames.push(JSON.parse(text))
    return this.hasRoom
  }

  close(code: number, reason: string): void {
    this.closed = [code, reason]
    if (this.isPolite) this.events.closed(code, reason)
  }

  /** All messages after the hello. */
  get asked(): unknown[][] {
    return this.frames.slice(1).flat()
  }

  say(...messages: readonly unknown[]): void {
    this.events.text(JSON.stringify(messages))
  }

  welcome(stream: object = {}, more: readonly unknown[] = [], server = 's'): void {
    const own = memoryStore({ clock: new TestClock() }).guarantees
    const guarantees = { ...own, ttl: { ...own.ttl, max: null } }
    const welcome = {
      server,
      guarantees,
      limits: DEFAULT_LIMITS,
      stream: { ...STREAM, ...stream },
    }
    this.events.opened()
    this.say(['welcome', PROTOCOL, welcome], ...more)
  }
}

/** A remote store, and every stream that it opens. */
export function scripted(
  options: RemoteStoreOptions = {},
  url: ServerAddress = 'http://localhost:7420',
) {
  const clock = new RunningClock()
  const streams: ScriptedStream[] = []
  const socket: OpenSocket = (url, given, events) => {
    const stream = new ScriptedStream(url, given, events)
    streams.push(stream)
    return stream
  }
  const random = { next: () => 0.5, id: () => 'an id that nobody else has' }
  const opening = remoteStore(url, { clock, random, socket, ...options })
  opening.catch(() => {})
  return { clock, streams, opening, last: () => streams.at(-1)! }
}

/** A store that is open, on its first stream. */
export async function opened(options: RemoteStoreOptions = {}, stream: object = {}) {
  const made = scripted(options)
  made.last().welcome(stream)
  const store: LeaseStore = await made.opening
  return { ...made, store }
}

/** The answer to a call, as soon as it arrives. */
export function later<Answer>(call: Promise<Answer>): { answer?: Answer; error?: Error } {
  const state: { answer?: Answer; error?: Error } = {}
  call.then(
    (answer) => {
      state.answer = answer
    },
    (error) => {
      state.error = error
    },
  )
  return state
}
