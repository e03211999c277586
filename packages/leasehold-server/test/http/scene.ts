import { type ClientRequest, request } from 'node:http'
import { memoryStore } from 'leasehold/memory'
import type { LeaseStore, Notice } from 'leasehold/port'
import { parseRight } from '../../src/access/index.ts'
import { createServer, type LeaseServer, type ServerOptions } from '../../src/index.ts'

export interface Answered {
  readonly status: number
  readonly type: string | null
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: tests look at what came, whatever it is.
  readonly body: any
}

/** A server for one test file, and a client that uses real HTTP. */
export class Scene {
  readonly store: LeaseStore
  readonly server: LeaseServer

  constructor(store: LeaseStore, server: LeaseServer) {
    this.store = store
    this.server = server
  }

  static async open(options: Partial<ServerOptions> = {}): Promise<Scene> {
    const store = options.store ?? memoryStore()
    return new Scene(store, await createServer({ port: 0, ...options, store }))
  }

  async close(): Promise<void> {
    await this.server.close()
    await this.store.close()
  }

  /** `ask('POST /v1/locks/key?ttl=30s')`. */
  async ask(
    what: string,
    body?: unknown,
    headers: Record<string, string> = {},
    signal: AbortSignal = AbortSignal.timeout(20_000),
  ): Promise<Answered> {
    const [method, path] = what.split(' ') as [string, string]
    const json = body === undefined ? {} : { 'content-type': 'application/json' }
    const response = await fetch(this.server.url + path, {
      method,
      headers: { ...json, ...headers },
      signal,
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const type = response.headers.get('content-type')
    const text = await response.text()
    const read = type?.includes('json') ? JSON.parse(text) : text
    return { status: response.status, type, headers: response.headers, body: read }
  }

  token(name: string, ...rights: string[]): Promise<string> {
    return this.server.access.tokens.create({ name, rights: rights.map(parseRight) })
  }

  /** A request whose connection can be cut. Fulfilled when the server has it. */
  async begin(method: string, path: string): Promise<ClientRequest> {
    const waiting = this.server.httpStats.waiting
    const sent = request(this.server.url + path, { method })
    sent.on('error', () => {})
    sent.end()
    await until(() => this.server.httpStats.waiting > waiting)
    return sent
  }

  /** Waits until a key has this many claims, by a watch and not by the clock. */
  async claims(key: string, count: number): Promise<void> {
    await changed(this.store, key, async () => {
      const reading = await this.store.read({ key })
      return reading.count === count
    })
  }
}

/** Looks again with every change on the key. */
async function changed(store: LeaseStore, key: string, look: () => Promise<boolean>) {
  let heard: (() => void) | undefined
  const watch = store.watch({ prefix: key }, (_: Notice) => heard?.())
  try {
    for (;;) {
      const next = new Promise<void>((resolve) => {
        heard = resolve
      })
      if (await look()) return
      await next
    }
  } finally {
    watch.close()
  }
}

/** Looks again in each turn of the event loop. */
export async function until(look: () => boolean): Promise<void> {
  while (!look()) await new Promise((resolve) => setImmediate(resolve))
}

export interface SseEvent {
  readonly event: string
  readonly id: string | undefined
  // biome-ignore lint/suspicious/noExplicitAny: tests look at what came, whatever it is.
  readonly data: any
}

/** Reads a stream of events, one by one. */
export class Reader {
  readonly #events: AsyncGenerator<SseEvent>
  readonly #abort: AbortController
  /** Comments that were read so far. */
  comments = 0

  private constructor(response: Response, abort: AbortController) {
    this.#abort = abort
    this.#events = this.#read(response)
  }

  static async open(url: string, headers: Record<string, string> = {}): Promise<Reader> {
    const abort = new AbortController()
    const response = await fetch(url, { headers, signal: abort.signal })
    if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
    return new Reader(response, abort)
  }

  /** The next event; `undefined` if the stream has ended. */
  async next(): Promise<SseEvent | undefined> {
    const { value, done } = await this.#events.next()
    return done ? undefined : value
  }

  close(): void {
    this.#abort.abort()
  }

  async *#read(response: Response): AsyncGenerator<SseEvent> {
    let text = ''
    const decoder = new TextDecoder()
    for await (const chunk of response.body!) {
      text += decoder.decode(chunk as Uint8Array, { stream: true })
      for (let at = text.indexOf('\n\n'); at >= 0; at = text.indexOf('\n\n')) {
        const block = text.slice(0, at)
        text = text.slice(at + 2)
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1]
        if (block.startsWith(':')) this.comments++
        else {
          yield {
            event: field('event')!,
            id: field('id'),
            data: JSON.parse(field('data') ?? 'null'),
          }
        }
      }
    }
  }
}

export function closed(sent: ClientRequest): Promise<void> {
  return new Promise((resolve) => {
    sent.once('close', () => resolve())
    sent.destroy()
  })
}
