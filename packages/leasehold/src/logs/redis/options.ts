import type { LogPromises } from '../../log/index.ts'
import { type Duration, positive } from '../../port/index.ts'
import type { Facts } from '../../stores/redis/guarantees.ts'
import { settingsOf as storeSettingsOf } from '../../stores/redis/options.ts'
import type { LogOptions, LogSettings } from '../options.ts'

export interface RedisLogOptions extends LogOptions {
  /** The keys of the log begin with this in braces, so that a cluster keeps them in one slot. */
  readonly namespace?: string | undefined
  /**
   * An entry is acknowledged when so many replicas have it. If they do not say so `within` a time (1 s
   * if not given) the outcome of the append is unknown.
   */
  readonly replicas?: number | undefined
  readonly within?: Duration | undefined
}

export interface Settings extends LogSettings {
  readonly namespace: string
  readonly replicas: number
  readonly within: number
}

export function settingsOf(options: RedisLogOptions): Settings {
  const { namespace, replicas, within, timeout, clock, random } = storeSettingsOf(options)
  return { namespace, replicas, within, timeout: positive(timeout, 'timeout'), clock, random }
}

export function promisesOf(
  { replicas, timeout }: Settings,
  { appends }: Facts,
  fsync: string,
): LogPromises {
  const isSynced = appends && fsync === 'always'
  return {
    engine: 'redis',
    durability: isSynced ? 'disk' : 'process',
    failoverLoses: true,
    entryBytes: 1 << 20,
    timeout,
    notes: [
      isSynced
        ? 'Redis has every entry on its disk before it answers (appendfsync always).'
        : `Redis may lose the last entries in a crash (appendonly ${appends ? 'yes' : 'no'}, appendfsync ${fsync}): set appendonly yes and appendfsync always.`,
      replicas > 0
        ? `An entry is acknowledged when ${replicas} replicas have it: a failover to one of them loses nothing. Redis chooses the replica.`
        : 'A failover to a replica loses what had not reached it.',
      'Replicas of the kernel notice a log that lost its end and go on with tokens above all that they have seen.',
    ],
  }
}
