import { Leasehold } from 'leasehold'
import type { LeaseId, LeaseStore, Token } from 'leasehold/port'
import { remoteStore } from 'leasehold/remote'
import { afterAll, describe, expect, it } from 'vitest'
import { Place } from '../setup/server-process.ts'

const KILLS = 30
/** Changes that are answered before the server is killed again. */
const BETWEEN = 100
const CLIENTS = 3
const WORKERS = 8
/** The server may be away for as long as this before a client gives up. */
const AWAY = '120s'

const place = new Place()
afterAll(() => place.clean())

/** The answers of a server, which it must never forget or repeat. */
class Answered {
  readonly tokens: Token[] = []
  readonly held = new Map<string, { readonly lease: LeaseId; readonly token: Token }>()
  readonly released: string[] = []
  #changes = 0
  #waiting: { readonly changes: number; readonly resolve: () => void } | undefined

  claimed(key: string, lease: LeaseId, token: Token): void {
    this.tokens.push(token)
    this.held.set(key, { lease, token })
    this.#changed()
  }

  /** Requested and not answered yet: whether it is held is unknown meanwhile. */
  letGo(key: string): void {
    this.held.delete(key)
  }

  freed(key: string): void {
    this.released.push(key)
    this.#changed()
  }

  /** Fulfilled when this many more changes were answered. */
  more(count: number): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting = { changes: this.#changes + count, resolve }
    })
  }

  #changed(): void {
    this.#changes++
    if (this.#waiting !== undefined && this.#changes >= this.#waiting.changes) {
      this.#waiting.resolve()
      this.#waiting = undefined
    }
  }
}

/** Grants, claims and releases, one after the other, until it is stopped. Nothing may fail. */
async function work(store: LeaseStore, name: string, answered: Answered, signal: AbortSignal) {
  let last = 0
  for (let number = 0; !signal.aborted; number++) {
    const key = `${name}/${number}`
    const request = { holder: name, ttl: 600_000, claims: [{ key }], request: `grant-${key}` }
    const granted = await store.grant(request)
    if (granted.outcome !== 'granted') throw new Error(`${key} was not free`)
    const { lease, token } = granted
    answered.claimed(key, lease, token!)
    expect(token, 'tokens rise').toBeGreaterThan(last)
    last = token!
    // One in ten stays.
    if (number % 10 === 0) continue
    answered.letGo(key)
    await store.release({ lease, keys: [key], token: last, request: `release-${key}` })
    answered.freed(key)
    await store.revoke({ target: { lease }, request: `revoke-${key}` })
  }
}

describe('a server that is killed 30 times under load', () => {
  it('loses nothing that it has answered, repeats no token, and its clients carry on', async () => {
    const server = await place.server()
    const stores = await Promise.all(
      Array.from({ length: CLIENTS }, () => remoteStore(server.url, { timeout: AWAY })),
    )
    const leasehold = await Leasehold.open(server.url, { holder: 'keeper', callTimeout: AWAY })
    const lock = await leasehold.lock('kept', { ttl: '10m' })
    const { token } = lock
    const lost: unknown[] = []
    leasehold.on('lost', (event) => lost.push(event))

    const answered = new Answered()
    const stop = new AbortController()
    const workers = stores.flatMap((store, client) =>
      Array.from({ length: WORKERS }, (_, worker) =>
        work(store, `${client}/${worker}`, answered, stop.signal),
      ),
    )
    const failed = Promise.all(workers)
    for (let kill = 0; kill < KILLS; kill++) {
      await Promise.race([answered.more(BETWEEN), failed])
      expect(await server.end('SIGKILL')).toBe('SIGKILL')
      await server.start()
    }
    await Promise.race([answered.more(BETWEEN), failed])
    stop.abort()
    await failed

    expect(new Set(answered.tokens).size, 'a token was given twice').toBe(answered.tokens.length)
    const [store] = stores
    await Promise.all(
      [...answered.held].map(async ([key, { lease, token }]) => {
        const { claims } = await store!.read({ key })
        expect(claims, key).toMatchObject([{ lease, token }])
      }),
    )
    await Promise.all(
      answered.released.map(async (key) => {
        expect((await store!.read({ key })).count, `${key} was released`).toBe(0)
      }),
    )
    expect([lock.state, lock.token, lost]).toEqual(['held', token, []])
    await lock.renew()
    await Promise.all([leasehold.close(), ...stores.map((each) => each.close())])
  }, 600_000)
})
