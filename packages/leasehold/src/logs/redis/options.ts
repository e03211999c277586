import type { Log, LogPromises } from '../../log/index.ts'
import type { Duration } from '../../port/index.ts'
import { connectionOf, type RedisClient } from '../../stores/redis/client.ts'
import { faultOf } from '../../stores/redis/faults.ts'
import { type Facts, inspect } from '../../stores/redis/guarantees.ts'
import { type Settings, settingsOf } from '../../stores/redis/options.ts'
import { openLog } from '../engine-log.ts'
import { checkLogOptions } from '../options/option-names.ts'
import type { LogOptions } from '../options/options.ts'
import { commandsOf } from './client.ts'
import { RedisLog } from './redis-log.ts'

export interface RedisLogOptions extends LogOptions {
  /** The keys of the log begin with this in braces, so that a cluster keeps them in one slot. */
  readonly namespace?: string | undefined
  /**
   * An entry is acknowledged when so many replicas have it. If they do not confirm it in
   * `replicasTimeout` (1 s if not given), the outcome of the append is unknown.
   */
  readonly replicas?: number | undefined
  readonly replicasTimeout?: Duration | undefined
  /** @deprecated The old name of `replicasTimeout`. */
  readonly within?: Duration | undefined
}

/**
 * Opens a log in a stream of Redis 7 or Valkey, for `replicaStore`, with the caller's client. Each
 * follower opens a connection by `duplicate()`.
 */
export async function redisLog(client: RedisClient, options: RedisLogOptions = {}): Promise<Log> {
  checkLogOptions('redis', options)
  const settings = settingsOf(options)
  const commands = commandsOf(client, settings.replicas)
  return openLog('Redis', settings, faultOf, async () => {
    const facts = await inspect(connectionOf(client), settings)
    const config = await commands.send('CONFIG', 'GET', 'appendfsync').catch(() => ({}))
    // A list, or a map with the newer protocol.
    const fsync = /\b(always|everysec|no)\b/.exec(Object.entries(config as object).join())?.[0]
    return new RedisLog(commands, settings, promisesOf(settings, facts, fsync ?? 'unknown')).open()
  })
}

function promisesOf(
  { replicas, timeout }: Settings,
  { appends }: Facts,
  fsync: string,
): LogPromises {
  const isSynced = appends && fsync === 'always'
  return {
    engine: 'redis',
    durability: isSynced ? 'disk' : 'process',
    failoverLoses: true,
    // A replaced master still answers reads, but no replica confirms its entries.
    tailMayBeOld: replicas > 0,
    entryBytes: 1 << 20,
    timeout,
    notes: [
      isSynced
        ? 'Redis writes every entry to its disk before it answers (appendfsync always).'
        : `Redis may lose the last entries in a crash (appendonly ${appends ? 'yes' : 'no'}, appendfsync ${fsync}): set appendonly yes and appendfsync always.`,
      replicas > 0
        ? `An entry is acknowledged when ${replicas} replicas have it: a failover to one of them loses nothing. Redis chooses the replica. A read appends an entry and waits for them, too.`
        : 'A failover to a replica loses entries that had not reached it. While a replaced master still answers, reads through it are old.',
      'Replicas of the kernel notice if the log lost its end, and continue with tokens above all that they have seen.',
    ],
  }
}
