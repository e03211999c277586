import type { Log } from '../log/index.ts'
import type { LeaseStore } from '../port/index.ts'
import { type ReplicaStoreOptions, replicaStore } from '../replica/index.ts'
import { type Engine, splitStoreOptions } from './options/option-names.ts'
import type { LogOptions } from './options/options.ts'

/** The options of a store on a log, in addition to those of the log. Both share `timeout`. */
export type StoreOptions = Omit<ReplicaStoreOptions, 'timeout'>

/** A store on a log: this process runs a replica of the kernel. */
export async function storeOn<Options extends LogOptions>(
  engine: Engine,
  options: Options & StoreOptions,
  openLog: (options: Options) => Promise<Log>,
): Promise<LeaseStore> {
  const { forLog, forReplica } = splitStoreOptions<Options>(engine, options)
  const log = await openLog(forLog)
  const timeout = options.timeout === undefined ? undefined : log.promises.timeout
  return replicaStore(log, { ...forReplica, timeout })
}
