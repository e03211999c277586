import { LeaseholdError } from '../../port/index.ts'
import { connectionOf, needsSingle, type RedisClient } from '../../stores/redis/client.ts'

/** The commands of a client with one connection. */
export function commandsOf(client: RedisClient, replicas: number) {
  const { send, wait } = connectionOf(client)
  if (replicas > 0 && !wait) throw needsSingle(replicas)
  if (send) return { send, wait, duplicate: () => duplicate(client) }
  throw new LeaseholdError(
    'unsupported',
    'the log form needs a client with one connection: use ioredis, or createClient() of redis',
  )
}

export type Commands = ReturnType<typeof commandsOf>
export type SecondConnection = Awaited<ReturnType<Commands['duplicate']>>

/** The methods of a `redis` connection. One of ioredis connects by itself and has no `destroy`. */
interface Duplicate {
  on(event: string, listener: () => void): unknown
  connect(): Promise<unknown>
  destroy?(): unknown
  disconnect(): unknown
}

/** Opens a second connection, for calls that block. */
async function duplicate(client: RedisClient) {
  const second = client.duplicate() as unknown as RedisClient & Duplicate
  // Without a listener an error would end the process. Failing calls report the error.
  second.on('error', () => {})
  if (second.destroy) await second.connect()
  const { send, wait } = connectionOf(second)
  const close = () => (second.destroy ? second.destroy() : second.disconnect())
  return { send: send!, wait, close }
}
