import { memoryStore } from 'leasehold/memory'
import type { LeaseStore } from 'leasehold/port'
import { WebSocket } from 'ws'
import { type AuditEntry, parseRight } from '../../src/access/index.ts'
import type { FeedMessage } from '../../src/dashboard/feed-messages.ts'
import { createServer, type LeaseServer } from '../../src/index.ts'

/** A server for one test, with its log. */
export class Scene {
  readonly store: LeaseStore
  readonly server: LeaseServer
  readonly audit: readonly AuditEntry[]

  private constructor(store: LeaseStore, server: LeaseServer, audit: readonly AuditEntry[]) {
    this.store = store
    this.server = server
    this.audit = audit
  }

  static async open(store: LeaseStore = memoryStore()): Promise<Scene> {
    const entries: AuditEntry[] = []
    const audit = { record: (entry: AuditEntry) => void entries.push(entry) }
    return new Scene(store, await createServer({ store, port: 0, audit }), entries)
  }

  get url(): string {
    return this.server.url
  }

  async close(): Promise<void> {
    await this.server.close()
    await this.store.close()
  }

  token(name: string, ...rights: string[]): Promise<string> {
    return this.server.access.tokens.create({ name, rights: rights.map(parseRight) })
  }

  ask(what: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> {
    const [method, path] = what.split(' ') as [string, string]
    return fetch(this.url + path, {
      method,
      headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(20_000),
    })
  }

  /** Signs in with a token, and gives the header that a browser would send from then on. */
  async signIn(token: string): Promise<{ readonly cookie: string; readonly set: string }> {
    const headers = { authorization: `Bearer ${token}` }
    const response = await this.ask('POST /dashboard/session', {}, headers)
    const set = response.headers.get('set-cookie') ?? ''
    return { cookie: set.split(';')[0]!, set }
  }

  /** A lease with claims. */
  async lease(holder: string, keys: readonly string[], more: object = {}): Promise<string> {
    const claims = keys.map((key) => ({ key }))
    const granted = await this.store.grant({ holder, ttl: 60_000, claims, ...more })
    if (granted.outcome === 'busy') throw new Error(`${keys} are busy`)
    return granted.lease
  }
}

/** A viewer of the feed, without a page. */
export class FeedReader {
  readonly messages: FeedMessage[] = []
  readonly socket: WebSocket
  readonly #looks = new Set<() => void>()

  constructor(url: string, headers: Record<string, string> = {}) {
    this.socket = new WebSocket(`${url.replace('http', 'ws')}/dashboard/feed`, { headers })
    this.socket.on('message', (data) => {
      this.messages.push(JSON.parse(String(data)) as FeedMessage)
      for (const look of [...this.#looks]) look()
    })
  }

  /** Fulfilled with the first message of this type that meets the condition. */
  async next<Type extends FeedMessage['type']>(
    type: Type,
    isSo: (message: Extract<FeedMessage, { type: Type }>) => boolean = () => true,
  ): Promise<Extract<FeedMessage, { type: Type }>> {
    return new Promise((resolve) => {
      const look = () => {
        const found = this.messages.find(
          (it): it is Extract<FeedMessage, { type: Type }> =>
            it.type === type && isSo(it as Extract<FeedMessage, { type: Type }>),
        )
        if (found === undefined) return
        this.#looks.delete(look)
        resolve(found)
      }
      this.#looks.add(look)
      look()
    })
  }

  /** The status that it was turned away with, or the code that it was closed with. */
  ended(): Promise<number> {
    return new Promise((resolve) => {
      this.socket.on('unexpected-response', (_request, response) =>
        resolve(response.statusCode ?? 0),
      )
      this.socket.on('close', (code) => resolve(code))
      this.socket.on('error', () => {})
    })
  }

  close(): void {
    this.socket.terminate()
  }
}
