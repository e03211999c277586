import type { LogPromises } from '../../log/index.ts'
import { type Duration, positive } from '../../port/index.ts'
import { checkName, type LogOptions, type LogSettings, logSettings } from '../options/options.ts'

export interface AzureLogOptions extends LogOptions {
  /** A key of the account. Not needed if the address has a shared access signature. */
  readonly key?: string | undefined
  /** The names of all blobs begin with this and a slash. `leasehold` if not given. */
  readonly prefix?: string | undefined
  /** How often a follower asks for entries of other processes; 100 ms if not given. */
  readonly poll?: Duration | undefined
  /** After so many blocks the next blob is used. 45,000 if not given; Azure allows 50,000. */
  readonly blocks?: number | undefined
}

export interface Settings extends LogSettings {
  readonly prefix: string
  readonly poll: number
  readonly blocks: number
}

export function settingsOf(options: AzureLogOptions): Settings {
  const { prefix = 'leasehold', blocks = 45_000 } = options
  checkName('prefix', prefix, /^[\w-]{1,64}$/, '1 to 64 letters, digits, _ or -')
  const poll = positive(options.poll ?? 100, 'poll')
  return { ...logSettings('azure', options), prefix, poll, blocks }
}

/** Azure's largest block is 4 MiB. */
export const ENTRY_BYTES = 1 << 20

export function promisesOf({ timeout, poll }: Settings): LogPromises {
  return {
    engine: 'azure',
    durability: 'disk',
    failoverLoses: true,
    entryBytes: ENTRY_BYTES,
    timeout,
    notes: [
      'An entry is acknowledged when Azure Storage has stored it, in as many copies as the redundancy of the account defines.',
      'A failover of the account to another region may lose the last entries. Replicas of the kernel notice.',
      `Azure does not push: each process polls every ${poll} ms for entries of the others, and Azure bills each request.`,
    ],
  }
}
