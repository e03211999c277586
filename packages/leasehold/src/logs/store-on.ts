import type { Log } from '../log/index.ts'
import type { LeaseStore } from '../port/index.ts'
import { type ReplicaStoreOptions, replicaStore } from '../replica/index.ts'
import type { LogOptions } from './options.ts'

/** The options of a store on a log, in addition to those of the log. Both share `timeout`. */
export type StoreOptions = Omit<ReplicaStoreOptions, 'timeout'>

/** A store on a log: this process runs a replica of the kernel. */
export async function storeOn(
  opening: Promise<Log>,
  options: LogOptions & StoreOptions,
): Promise<LeaseStore> {
  const log = await opening
  const timeout = options.timeout === undefined ? undefined : log.promises.timeout
  return replicaStore(log, { ...options, timeout })
}
