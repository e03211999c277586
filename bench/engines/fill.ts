/** Fills engines with many leases. */
import type { LeaseStore } from 'leasehold/port'
import type { EtcdClient, Raw } from './etcd-client.js'

export interface Batch {
  readonly count: number
  /** In milliseconds. A function is called once per lease. */
  readonly ttl: number | (() => number)
  /** Each lease has the key `${prefix}${number}`. */
  readonly prefix: string
}

const ttlOf = (ttl: Batch['ttl']) => (typeof ttl === 'number' ? ttl : ttl())

/** Calls `once` for each number below `count`, with at most `width` calls at a time. */
export async function forEachConcurrently(
  count: number,
  width: number,
  once: (number: number) => Promise<unknown>,
): Promise<void> {
  let next = 0
  const worker = async () => {
    while (next < count) await once(next++)
  }
  await Promise.all(Array.from({ length: width }, worker))
}

/** Grants leases in our store, each with one key. */
export async function fillOurs(
  store: LeaseStore,
  { count, ttl, prefix }: Batch,
): Promise<string[]> {
  const leases: string[] = new Array(count)
  await forEachConcurrently(count, 2000, async (number) => {
    const claims = [{ key: `${prefix}${number}` }]
    const granted = await store.grant({ holder: 'bench', ttl: ttlOf(ttl), claims })
    if (granted.outcome !== 'granted') throw new Error('not granted')
    leases[number] = granted.lease
  })
  return leases
}

/** Sets Redis keys with a ttl: Redis has no leases. */
// biome-ignore lint/suspicious/noExplicitAny: the library's types are not there when this is compiled.
export async function fillRedis(redis: any, { count, ttl, prefix }: Batch): Promise<void> {
  for (let done = 0; done < count; ) {
    const pipeline = redis.pipeline()
    const end = Math.min(count, done + 5000)
    for (; done < end; done++) {
      // An absolute time, so that waiting in the pipeline does not prolong the key's life.
      const until = Math.round(Date.now() + ttlOf(ttl))
      pipeline.set(`${prefix}${done}`, 'bench', 'PXAT', until)
    }
    await pipeline.exec()
  }
}

/** Grants leases in etcd, each with one key if a prefix is given. */
export async function fillEtcd(
  client: EtcdClient,
  { count, ttl, prefix }: Omit<Batch, 'prefix'> & { readonly prefix?: string },
): Promise<Raw[]> {
  const leases: Raw[] = new Array(count)
  await forEachConcurrently(count, 128, async (number) => {
    const lease = await client.grant(Math.ceil(ttlOf(ttl) / 1000))
    if (prefix !== undefined) await client.put(`${prefix}${number}`, lease)
    leases[number] = lease
  })
  return leases
}
