import type { LogPromises } from '../../log/index.ts'
import { invalid, show } from '../../port/index.ts'
import { checkName, type LogOptions, logSettings } from '../options/options.ts'
import type { ServerInfo } from './client/index.ts'
import type { StreamInfo } from './streams.ts'

export interface NatsLogOptions extends LogOptions {
  /** The name of the stream; the snapshots are in `<name>_snapshots`. `leasehold` if not given. */
  readonly name?: string | undefined
  /** How many servers keep a copy: 1, 3 or 5. Used when the stream is created; 1 if not given. */
  readonly replicas?: number | undefined
  /**
   * Whether the server syncs each message to its disk (`sync_interval: always`, NATS 2.10 or later).
   * The server does not report it. False if not given.
   */
  readonly synced?: boolean | undefined
}

export type Settings = ReturnType<typeof settingsOf>

export function settingsOf(options: NatsLogOptions) {
  const { name = 'leasehold', replicas = 1, synced = false } = options
  checkName('name', name, /^[\w-]{1,64}$/, '1 to 64 letters, digits, _ or -')
  if (![1, 3, 5].includes(replicas)) throw invalid(`replicas is ${show(replicas)}: use 1, 3 or 5`)
  return { ...logSettings('nats', options), name, replicas, synced }
}

const UNSYNCED =
  'By default NATS syncs its files every 2 minutes. Until then an entry survives a crash of the server process, but not of its machine. Set sync_interval: always (NATS 2.10) and synced: true, or use replicas.'
const UNSYNCED_COPIES =
  'By default NATS syncs its files every 2 minutes: a machine that crashes may come back without entries that it had acknowledged. They are lost if a majority crashes at once, or if that machine then forms a majority with servers that never had them. Set sync_interval: always and synced: true.'
const READS =
  'On a cluster a read appends an entry, which concurrent reads share, because a server that was just replaced may still report an old end of the stream.'

/** In earlier releases a leader that froze and resumed keeps entries that the others do not have. */
const AGREES_SINCE = [2, 12] as const

export function promisesOf(
  { synced, timeout }: Settings,
  { config, cluster }: StreamInfo,
  server: ServerInfo | undefined,
): LogPromises {
  const replicas = config.num_replicas
  const tailMayBeOld = cluster !== undefined
  const version = server?.version ?? 'of an unknown version'
  const failoverLoses = replicas > 1 && !copiesAgree(version)
  const copies =
    replicas === 1
      ? 'The stream has one copy: nothing is granted while its server is down.'
      : `An entry is acknowledged by a majority of ${replicas} servers.`
  return {
    engine: 'nats',
    durability: replicas > 1 ? 'majority' : synced ? 'disk' : 'process',
    failoverLoses,
    tailMayBeOld,
    entryBytes: server?.max_payload ?? 1 << 20,
    timeout,
    notes: [
      ...(synced ? [] : [replicas > 1 ? UNSYNCED_COPIES : UNSYNCED]),
      copies,
      ...(tailMayBeOld ? [READS] : []),
      ...(failoverLoses ? [differs(version)] : []),
    ],
  }
}

/** Whether the copies of a stream stay the same when its leader freezes: see docs/nats.md. */
function copiesAgree(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > AGREES_SINCE[0] || (major === AGREES_SINCE[0] && minor >= AGREES_SINCE[1])
}

function differs(version: string): string {
  const fault = `NATS ${version}: a leader that froze and resumed may keep entries that the others do not have, and deliver them to its clients. If it becomes the leader again, acknowledged entries are lost.`
  return `${fault} Use NATS ${AGREES_SINCE.join('.')} or later on all servers.`
}
