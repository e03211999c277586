import type { LogPromises } from '../../log/index.ts'
import { invalid, show } from '../../port/index.ts'
import { checkName, type LogOptions, type LogSettings, logSettings } from '../options.ts'

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

export interface Settings extends LogSettings {
  readonly name: string
  readonly replicas: number
  readonly synced: boolean
}

export function settingsOf(options: NatsLogOptions): Settings {
  const { name = 'leasehold', replicas = 1, synced = false } = options
  checkName('name', name, /^[\w-]{1,64}$/, '1 to 64 letters, digits, _ or -')
  if (![1, 3, 5].includes(replicas)) throw invalid(`replicas is ${show(replicas)}: give 1, 3 or 5`)
  return { ...logSettings(options), name, replicas, synced }
}

const UNSYNCED =
  'NATS syncs its files every 2 minutes by default: an entry survives a crash of the server process at once, but a crash of its machine only after that. Set sync_interval: always (NATS 2.10) and say so with synced, or use replicas.'
const STALE =
  'A read asks the server that leads the stream. One that was just cut off from the others may answer for up to 3 s: such a read may be old. Grants, renewals and releases are not affected.'

export function promisesOf(
  { synced, timeout }: Settings,
  replicas: number,
  entryBytes: number,
): LogPromises {
  const notes = synced ? [] : [UNSYNCED]
  if (replicas === 1) notes.push('The stream has one copy: without its server nothing is granted.')
  else {
    const majority = `An entry is acknowledged by a majority of ${replicas} servers.`
    notes.push(`${majority} If a majority loses power at once, what none had synced is lost.`)
    notes.push(STALE)
  }
  const durability = replicas > 1 ? 'majority' : synced ? 'disk' : 'process'
  return { engine: 'nats', durability, failoverLoses: false, entryBytes, timeout, notes }
}
