/** Lock libraries on Redis, with their default settings, except that they try forever. */
import { randomBytes } from 'node:crypto'
import { loadPeer } from '../engines/peer-library.js'
import { locker, type OpenLocker } from './locker.js'

const DELETE_IF_MINE =
  'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end'

async function ioredis(port: number) {
  const { Redis } = await loadPeer('ioredis')
  const redis = new Redis({ port, host: '127.0.0.1', maxRetriesPerRequest: null })
  // The measurements include a frozen or restarted engine.
  redis.on('error', () => {})
  return redis
}

/** By hand: SET NX PX, and a script that deletes the key if it is still ours. Does not wait. */
export const openRaw: OpenLocker = async ({ port, ttl }) => {
  const redis = await ioredis(port)
  redis.defineCommand('unlock', { numberOfKeys: 1, lua: DELETE_IF_MINE })
  return locker(
    async (key) => {
      const mine = randomBytes(16).toString('base64url')
      const until = performance.now() + ttl
      if ((await redis.set(key, mine, 'PX', ttl, 'NX')) !== 'OK') throw new Error('not locked')
      return {
        release: () => redis.unlock(key, mine),
        believes: () => performance.now() < until,
      }
    },
    async () => redis.disconnect(),
  )
}

export const openRedisSemaphore: OpenLocker = async ({ port, ttl }) => {
  const { Mutex } = await loadPeer('redis-semaphore')
  const redis = await ioredis(port)
  return locker(
    async (key) => {
      const onLockLost = () => {}
      const acquireTimeout = Number.POSITIVE_INFINITY
      const mutex = new Mutex(redis, key, { lockTimeout: ttl, acquireTimeout, onLockLost })
      await mutex.acquire()
      return { release: () => mutex.release(), believes: () => mutex.isAcquired }
    },
    async () => redis.disconnect(),
  )
}

export const openRedlock4: OpenLocker = async ({ port, ttl }) => {
  const { default: Redlock } = await loadPeer('redlock-4')
  const redis = await ioredis(port)
  const redlock = new Redlock([redis], { retryCount: -1 })
  redlock.on('clientError', () => {})
  return locker(
    async (key) => {
      const lock = await redlock.lock(key, ttl)
      return { release: () => lock.unlock(), believes: () => lock.expiration > Date.now() }
    },
    async () => redis.disconnect(),
  )
}

export const openRedlock5: OpenLocker = async ({ port, ttl }) => {
  const { default: module } = await loadPeer('redlock-5')
  const Redlock = module.default ?? module
  const redis = await ioredis(port)
  const redlock = new Redlock([redis])
  redlock.on('error', () => {})
  // Only acquiring retries forever: a failed extension is given up, as in the library.
  const patient = { retryCount: -1 }
  return {
    lock: async (key) => {
      const lock = await redlock.acquire([key], ttl, patient)
      return { release: () => lock.release(), believes: () => lock.expiration > Date.now() }
    },
    // Only `using` extends a lock automatically.
    keep: (key) =>
      new Promise((resolve, reject) => {
        let end = () => {}
        const ended = new Promise<void>((done) => {
          end = done
        })
        const work = async (signal: AbortSignal) => {
          const release = () => {
            end()
            return using
          }
          resolve({ release, believes: () => !signal.aborted })
          await ended
        }
        const using: Promise<unknown> = redlock.using([key], ttl, patient, work)
        using.catch(reject)
      }),
    close: async () => redis.disconnect(),
  }
}

export const openVerrou: OpenLocker = async ({ port, ttl }) => {
  const { Verrou } = await loadPeer('@verrou/core')
  const { redisStore } = await loadPeer('@verrou/core/drivers/redis')
  const connection = await ioredis(port)
  const driver = redisStore({ connection })
  const verrou = new Verrou({ default: 'redis', stores: { redis: { driver } } })
  return locker(
    async (key) => {
      const lock = verrou.createLock(key, ttl)
      if (!(await lock.acquire())) throw new Error('not locked')
      return { release: () => lock.release(), believes: () => !lock.isExpired() }
    },
    async () => connection.disconnect(),
  )
}

export const openVerrouInMemory: OpenLocker = async ({ ttl }) => {
  const { Verrou } = await loadPeer('@verrou/core')
  const { memoryStore } = await loadPeer('@verrou/core/drivers/memory')
  const verrou = new Verrou({ default: 'memory', stores: { memory: { driver: memoryStore() } } })
  return locker(
    async (key) => {
      const lock = verrou.createLock(key, ttl)
      if (!(await lock.acquire())) throw new Error('not locked')
      return { release: () => lock.release(), believes: () => !lock.isExpired() }
    },
    async () => {},
  )
}

export const openSimpleRedisMutex: OpenLocker = async ({ port, ttl }) => {
  const { createClient } = await loadPeer('redis')
  const { lock } = await loadPeer('simple-redis-mutex')
  const redis = createClient({ url: `redis://127.0.0.1:${port}` })
  redis.on('error', () => {})
  await redis.connect()
  return locker(
    async (key) => {
      const release = await lock(redis, key, { timeout: ttl })
      // It does not report that a lock has ended.
      return { release: () => release(), believes: () => true }
    },
    async () => redis.destroy(),
  )
}
