import { formatDuration, type Guarantees, LeaseholdError, withTimeout } from '../../port/index.ts'
import type { Connection } from './client.ts'
import { faultOf } from './faults.ts'
import type { Settings } from './options.ts'
import { scriptOf } from './scripts/index.ts'
import { SAFETY_MS } from './watches/deadlines.ts'

/** The settings of Redis that affect the guarantees. */
export interface Facts {
  /** It has an append-only file. */
  readonly appends: boolean
}

const ABOUT = scriptOf(`#!lua flags=no-writes
return redis.call('INFO', 'server') .. redis.call('INFO', 'memory') .. redis.call('INFO', 'persistence')`)

/** Reads the settings of Redis, and refuses one that would evict leases when its memory is full. */
export async function inspect(
  connection: Connection,
  settings: Pick<Settings, 'clock' | 'timeout' | 'namespace'>,
): Promise<Facts> {
  const { clock, timeout } = settings
  const key = `{${settings.namespace}}:meta`
  const message = `Redis did not answer within ${formatDuration(timeout)}: is it running, and is the client connected?`
  const late = () => new LeaseholdError('timeout', message)
  const deadline = clock.now() + timeout
  const asked = withTimeout(clock, deadline, connection.run(ABOUT, key, []), late, false)
  const info = await asked.catch((error: unknown) => {
    throw faultOf(error)
  })
  const value = (name: string) => new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(String(info))?.[1]
  const policy = value('maxmemory_policy')
  if (policy?.startsWith('allkeys-')) {
    throw new LeaseholdError(
      'unsupported',
      `maxmemory-policy is ${policy}: when its memory is full this Redis would throw away leases and tokens; set it to noeviction (CONFIG SET maxmemory-policy noeviction), or use another Redis`,
    )
  }
  return { appends: value('aof_enabled') === '1' }
}

export function guaranteesOf({ appends }: Facts, { limits, replicas }: Settings): Guarantees {
  return {
    engine: 'redis',
    inProcess: false,
    durability: 'engine',
    tokensSurvive: 'failover',
    ttl: { min: limits.ttlMin, max: limits.ttlMax, step: 0 },
    expiryLateness: 50,
    childLeases: true,
    requestsRemembered: limits.requests,
    eventsKept: limits.events,
    notes: [
      appends
        ? 'One Redis with appendfsync always loses nothing that it answered; with everysec a crash may lose the last second, and two may then hold one key until the older one learns of it.'
        : 'This Redis keeps no append-only file: a crash loses leases, and two may then hold one key until the older one learns of it.',
      replicas > 0
        ? `An answer waits for ${replicas} of the replicas: a failover to one of them loses nothing that was answered; the choice of the replica is not ours.`
        : 'A failover to a replica loses what had not reached it: two may then hold one key until the older one learns of it.',
      'Tokens never repeat nor go down, whatever Redis loses, so a fence keeps the older holder out; that rests on clocks of the machines of Redis that differ by less than a Redis runs.',
      'After a restart or a failover every lease lives for its full ttl again, and watches are interrupted, so that they read again.',
      'Time is the wall clock of the machine of Redis: set back it stands still, but a step forward ends leases early; let it be slewed.',
      `A message notifies a waiter. If it is lost, the waiter notices within ${SAFETY_MS / 1000} s.`,
      'Keys are read in the order of code points.',
    ],
  }
}
