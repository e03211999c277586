import type { Log } from '../../log/index.ts'
import { formatDuration, LeaseholdError } from '../../port/index.ts'
import { connectionOf, type RedisClient } from '../../stores/redis/client.ts'
import { inspect } from '../../stores/redis/guarantees.ts'
import { type LogEngine, openLog } from '../engine-log.ts'
import { type Commands, commandsOf } from './client.ts'
import { faultOf } from './faults.ts'
import { Reader } from './follower.ts'
import { promisesOf, type RedisLogOptions, type Settings, settingsOf } from './options.ts'
import { Stream } from './stream.ts'

/**
 * A log in a stream of Redis 7 or Valkey, for `replicaStore`. The client is the caller's. Each
 * follower opens a connection by `duplicate()`.
 */
export async function redisLog(client: RedisClient, options: RedisLogOptions = {}): Promise<Log> {
  const settings = settingsOf(options)
  const commands = commandsOf(client, settings.replicas)
  return openLog('Redis', settings, faultOf, async () => {
    const facts = await inspect(connectionOf(client), settings)
    if (Number.parseInt(facts.version, 10) < 7) {
      throw new LeaseholdError('unsupported', `Redis is ${facts.version}: a log needs 7 or newer`)
    }
    const fsync = await commands.send('CONFIG', 'GET', 'appendfsync').catch(() => undefined)
    const promises = promisesOf(settings, facts, textsOf(fsync)[1] ?? 'unknown')
    return engineOf(commands, settings, promises)
  })
}

async function engineOf(
  commands: Commands,
  settings: Settings,
  promises: LogEngine['promises'],
): Promise<LogEngine> {
  const { namespace, clock, timeout, replicas, within } = settings
  const stream = new Stream(commands, namespace)
  let { epoch } = await stream.open()
  return {
    promises,
    parts: stream.parts,
    async append(entry) {
      const position = await stream.append(epoch, entry)
      if (replicas === 0) return position
      const count = await commands.wait!(replicas, within)
      if (count >= replicas) return position
      throw new LeaseholdError(
        'unknown-outcome',
        `it was appended, but only ${count} of ${replicas} replicas had it within ${formatDuration(within)}: a failover might lose it`,
      )
    },
    async follow(feed) {
      // A lost stream is made again, under another epoch: it ends before everything that was in it.
      const end = await stream.open()
      const isOther = end.epoch !== epoch
      epoch = end.epoch
      if (isOther || feed.after > end.tail) feed.end({ cause: 'ahead', tail: end.tail })
      else await new Reader(feed, stream, epoch, clock, timeout).start(commands)
    },
    async tail() {
      const end = await stream.end()
      if (end?.epoch === epoch) return end.tail
      throw new LeaseholdError('unknown-outcome', 'the stream was lost, or made anew: follow again')
    },
    async trim(through) {
      const end = await stream.end()
      if (end?.epoch === epoch) await stream.trim(end, through)
    },
  }
}

/** A list, or a map with the newer protocol, as texts. */
function textsOf(answer: unknown): string[] {
  if (Array.isArray(answer)) return answer.map(String)
  return Object.entries((answer as object | undefined) ?? {})
    .flat()
    .map(String)
}
