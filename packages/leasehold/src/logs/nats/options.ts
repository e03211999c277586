import type { LogPromises } from '../../log/index.ts'
import { invalid, show } from '../../port/index.ts'
import { checkName, type LogOptions, logSettings } from '../options.ts'
import type { StreamInfo } from './streams.ts'

export interface NatsLogOptions extends LogOptions {
  /** The name of the stream; the snapshots are in `<name>_snapshots`. `leasehold` if not given. */
  readonly name?: string | undefined
  /** Servers that keep a copy: 1, 3 or 5. Used when the stream is created; 1 if not given. */
  readonly replicas?: number | undefined
  /**
   * Whether the server syncs each message to its disk (`sync_interval: always`, from NATS 2.10 on).
   * The server does not tell. False if not given.
   */
  readonly synced?: boolean | undefined
}

export type Settings = ReturnType<typeof settingsOf>

export function settingsOf(options: NatsLogOptions) {
  const { name = 'leasehold', replicas = 1, synced = false } = options
  checkName('name', name, /^[\w-]{1,64}$/, '1 to 64 letters, digits, _ or -')
  if (![1, 3, 5].includes(replicas)) throw invalid(`replicas is ${show(replicas)}: give 1, 3 or 5`)
  return { ...logSettings(options), name, replicas, synced }
}

const UNSYNCED =
  'NATS syncs its files every 2 minutes by default: an entry survives a crash of the server process at once, but a crash of its machine only after that. Set sync_interval: always (NATS 2.10) and say so with synced, or use replicas.'
const READS =
  'On a cluster a read appends an entry, which all reads of the moment share: a server that was just replaced may still say where the stream ends.'

/** Seen with NATS 2.9.10: docs/nats.md. */
const THAWED =
  'A server that led, froze and goes on may give entries to its clients that the majority does not have: what was answered by them is lost, and its tokens may be given again.'

export function promisesOf(
  { synced, timeout }: Settings,
  { config, cluster }: StreamInfo,
  entryBytes: number,
): LogPromises {
  const replicas = config.num_replicas
  const tailMayBeOld = cluster !== undefined
  const copies =
    replicas === 1
      ? 'The stream has one copy: without its server nothing is granted.'
      : `An entry is acknowledged by a majority of ${replicas} servers. If a majority loses power at once, what none had synced is lost.`
  return {
    engine: 'nats',
    durability: replicas > 1 ? 'majority' : synced ? 'disk' : 'process',
    failoverLoses: replicas > 1,
    tailMayBeOld,
    entryBytes,
    timeout,
    notes: [...(synced ? [] : [UNSYNCED]), copies, ...(tailMayBeOld ? [READS, THAWED] : [])],
  }
}
