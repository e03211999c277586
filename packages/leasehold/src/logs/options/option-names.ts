import { checkNames, knownNames } from '../../port/index.ts'
import type { AzureLogOptions } from '../azure/options.ts'
import type { ConsulLogOptions } from '../consul/options.ts'
import type { EtcdLogOptions } from '../etcd/options.ts'
import type { NatsLogOptions } from '../nats/options.ts'
import type { PostgresLogOptions } from '../postgres/options.ts'
import type { RedisLogOptions } from '../redis/options.ts'
import type { StoreOptions } from '../store-on.ts'
import type { ZookeeperLogOptions } from '../zookeeper/options.ts'
import type { LogOptions } from './options.ts'

const COMMON: Record<keyof LogOptions, true> = { timeout: true, clock: true, random: true }

const LOGS = {
  azure: knownNames<AzureLogOptions>({
    ...COMMON,
    key: true,
    prefix: true,
    poll: true,
    blocks: true,
  }),
  consul: knownNames<ConsulLogOptions>({
    ...COMMON,
    endpoints: true,
    token: true,
    prefix: true,
  }),
  etcd: knownNames<EtcdLogOptions>({
    ...COMMON,
    endpoints: true,
    tls: true,
    auth: true,
    prefix: true,
    memberTimeout: true,
    patience: true,
    entryBytes: true,
  }),
  nats: knownNames<NatsLogOptions>({ ...COMMON, name: true, replicas: true, synced: true }),
  postgres: knownNames<PostgresLogOptions>({ ...COMMON, schema: true, listen: true, poll: true }),
  redis: knownNames<RedisLogOptions>({
    ...COMMON,
    namespace: true,
    replicas: true,
    replicasTimeout: true,
    within: true,
  }),
  zookeeper: knownNames<ZookeeperLogOptions>({
    ...COMMON,
    servers: true,
    connect: true,
    auth: true,
    root: true,
    entryBytes: true,
  }),
}

const STORE = knownNames<StoreOptions>({
  clock: true,
  random: true,
  limits: true,
  coalesce: true,
  snapshotBytes: true,
  memberTtl: true,
  tokensAbove: true,
})

export type Engine = keyof typeof LOGS

/** Refuses a misspelt option of `etcdLog` and the others. */
export function checkLogOptions(engine: Engine, options: object): void {
  checkNames(`${engine}Log`, options, LOGS[engine])
}

/** Refuses a misspelt option of a store on a log, and splits the options for the log and the replica. */
export function splitStoreOptions<Options extends object>(
  engine: Engine,
  options: Options & StoreOptions,
): { forLog: Options; forReplica: StoreOptions } {
  const known = LOGS[engine]
  checkNames(`${engine}Store`, options, new Set([...known, ...STORE]))
  const given = Object.entries(options)
  return {
    forLog: Object.fromEntries(given.filter(([name]) => known.has(name))) as Options,
    forReplica: Object.fromEntries(given.filter(([name]) => STORE.has(name))),
  }
}
