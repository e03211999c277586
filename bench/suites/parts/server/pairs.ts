import { Leasehold } from 'leasehold'
import type { LeaseStore } from 'leasehold/port'
import { remoteStore } from 'leasehold/remote'
import { perSecondAsync } from '../../../measure/rows.js'
import { startServer } from '../remote/processes.js'

/** Locks and unlocks a key that nobody else wants. */
export type Pair = (key: string) => Promise<void>

/** Pairs per second on distinct keys, with this many in flight. */
export function pairsPerSecond(pair: Pair, inFlight: number, pairs: number): Promise<number> {
  return perSecondAsync(pairs, () =>
    Promise.all(
      Array.from({ length: inFlight }, async (_, worker) => {
        for (let i = 0; i < pairs / inFlight; i++) await pair(`jobs/${worker}/${i % 100}`)
      }),
    ),
  )
}

export interface Ours {
  /** A claim and its release, with request ids, as our client sends them. */
  readonly store: Pair
  /** A pair through the client: `lock` and `release`. */
  readonly client: Pair
  /** The process of the server. */
  readonly pid: number
  end(): Promise<void>
}

/** A server on a file store, and one connection to it. */
export async function startOurs(): Promise<Ours> {
  const server = await startServer('file')
  const store = await remoteStore(server.url)
  const leasehold = await Leasehold.open(store, { holder: 'bench' })
  return {
    pid: server.pid,
    store: await storePair(store),
    client: async (key) => {
      const lock = await leasehold.lock(key, { ttl: '60s' })
      await lock.release()
    },
    end: async () => {
      await leasehold.close()
      await store.close()
      await server.end()
    },
  }
}

/** A claim and its release, with request ids, as our client sends them. */
export async function storePair(store: LeaseStore): Promise<Pair> {
  const granted = await store.grant({ holder: 'bench', ttl: 600_000 })
  if (granted.outcome !== 'granted') throw new Error('not granted')
  const { lease } = granted
  let number = 0
  return async (key) => {
    const request = `AbCdEfGhIjKlMnOpQrStUv-${++number}`
    const claimed = await store.claim({ lease, claims: [{ key }], request })
    if (claimed.outcome !== 'claimed') throw new Error('not claimed')
    await store.release({ lease, keys: [key], token: claimed.token })
  }
}
