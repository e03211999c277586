import { Redis } from 'ioredis'
import { Leasehold } from 'leasehold'
import type { LeaseStore } from 'leasehold/port'
import { postgresLog, postgresStore } from 'leasehold/postgres'
import { redisLog, redisStore } from 'leasehold/redis'
import { replicaStore } from 'leasehold/replica'
import type { Pair } from '../../parts/server/pairs.js'
import { poolAt } from '../postgres/setup.js'

export const FORMS = {
  redis: {
    log: async (port: number) => {
      const client = new Redis({ port, maxRetriesPerRequest: null })
      // Both forms have a stream of the same name in a namespace.
      const log = await redisLog(client, { namespace: 'bench-log', timeout: '60s' })
      return opened(await replicaStore(log, { timeout: 60_000 }), () => client.disconnect())
    },
    native: async (port: number) => {
      const client = new Redis({ port, maxRetriesPerRequest: null })
      return opened(await redisStore(client), () => client.disconnect())
    },
  },
  postgres: {
    log: async (port: number) => {
      const pool = poolAt(port)
      const log = await postgresLog(pool, { timeout: '60s' })
      return opened(await replicaStore(log, { timeout: 60_000 }), () => pool.end())
    },
    native: async (port: number) => {
      const pool = poolAt(port)
      return opened(await postgresStore(pool, { timeout: '60s' }), () => pool.end())
    },
  },
} as const

export type EngineName = keyof typeof FORMS
export type FormName = 'log' | 'native'

export interface OpenForm {
  /** Lock and unlock by our client. */
  readonly pair: Pair
  end(): Promise<void>
}

async function opened(store: LeaseStore, release: () => unknown): Promise<OpenForm> {
  const leasehold = await Leasehold.open(store, { holder: 'bench' })
  return {
    pair: async (key) => {
      const lock = await leasehold.lock(key, { ttl: '60s' })
      await lock.release()
    },
    end: async () => {
      await leasehold.close()
      await store.close()
      await release()
    },
  }
}
