import { createHash } from 'node:crypto'
import { invalid, show, type Token } from '../port/index.ts'
import { checkAdmission, type Fence, refuseStale, unanswered } from './fence.ts'

/** The parts of `ioredis` that are used. */
export interface IoRedisClient {
  eval(script: string, keyCount: number, ...keysAndValues: string[]): Promise<unknown>
  evalsha(digest: string, keyCount: number, ...keysAndValues: string[]): Promise<unknown>
}

/** The parts of `redis` (node-redis) that are used. */
export interface NodeRedisClient {
  eval(script: string, options: ScriptArguments): Promise<unknown>
  evalSha(digest: string, options: ScriptArguments): Promise<unknown>
}

interface ScriptArguments {
  keys: string[]
  arguments: string[]
}

export type RedisClient = IoRedisClient | NodeRedisClient

export interface RedisFenceOptions {
  /** The prefix of the fence's own keys. Default: `leasehold:fence:`. */
  readonly prefix?: string | undefined
}

/**
 * A fence in Redis: one key per resource, with the highest token seen. The keys never expire.
 *
 * It is as durable as Redis. With `appendonly yes` and `appendfsync always`, an admitted token
 * survives a crash of the process and of the machine. With `everysec`, the default of the
 * append-only file, a crash may lose the last second; without the file, everything since the last
 * snapshot. Then a stale holder is admitted again. The same may happen after a failover to a replica
 * that was behind. The policy for full memory must be `noeviction` or one of `volatile-*`: the
 * `allkeys-*` policies delete the fence's keys.
 */
export interface RedisFence extends Fence {
  /**
   * Checks the token and sets a key to a value, in one atomic step. In a cluster both keys must be in
   * one slot: give the resource and the key the same part in braces.
   */
  set(resource: string, token: Token, key: string, value: string): Promise<void>
}

/**
 * Returns the highest token that the resource has seen, this one included. Numbers in Lua are
 * doubles, which are exact for every token (a safe integer). As strings they would lose digits, so
 * tokens are stored and returned as the string that was sent.
 */
const SCRIPT = `
local seen = redis.call('GET', KEYS[1])
if seen then
  if not string.match(seen, '^[1-9]%d*$') then
    return redis.error_reply('ERR ' .. KEYS[1] .. ' does not hold a token')
  end
  if tonumber(seen) > tonumber(ARGV[1]) then return seen end
end
if seen ~= ARGV[1] then redis.call('SET', KEYS[1], ARGV[1]) end
if KEYS[2] then redis.call('SET', KEYS[2], ARGV[2]) end
return ARGV[1]
`
const DIGEST = createHash('sha1').update(SCRIPT).digest('hex')

export function redisFence(client: RedisClient, options: RedisFenceOptions = {}): RedisFence {
  const { prefix = 'leasehold:fence:' } = options
  if (typeof prefix !== 'string') {
    throw invalid(`prefix is ${show(prefix)}: it must be a string`)
  }

  async function judge(
    resource: string,
    token: Token,
    keys: string[] = [],
    values: string[] = [],
  ): Promise<void> {
    checkAdmission(resource, token)
    const answer = run(client, [prefix + resource, ...keys], [String(token), ...values])
    const highest = await answer.catch((error: unknown) => {
      throw unanswered('Redis', resource, error)
    })
    refuseStale(resource, token, Number(highest))
  }

  return {
    admit: (resource, token) => judge(resource, token),
    async set(resource, token, key, value) {
      if (typeof key !== 'string' || typeof value !== 'string') {
        throw invalid(`key is ${show(key)} and value is ${show(value)}: both must be strings`)
      }
      await judge(resource, token, [key], [value])
    },
  }
}

/** Runs the script by its digest, which is short. Sends the whole script if Redis does not know it. */
async function run(client: RedisClient, keys: string[], values: string[]): Promise<unknown> {
  try {
    return await ('evalSha' in client
      ? client.evalSha(DIGEST, { keys, arguments: values })
      : client.evalsha(DIGEST, keys.length, ...keys, ...values))
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
  }
  return 'evalSha' in client
    ? client.eval(SCRIPT, { keys, arguments: values })
    : client.eval(SCRIPT, keys.length, ...keys, ...values)
}
