import { afterAll, beforeAll, describe, it } from 'vitest'
import type { Log } from '../../src/log/index.ts'
import { etcdLog } from '../../src/logs/etcd/index.ts'
import { zookeeperLog } from '../../src/logs/zookeeper/index.ts'
import { logConformance } from '../../src/testing/index.ts'
import {
  describeWith,
  type EngineSpec,
  Ensemble,
  ETCD,
  EtcdCluster,
  NEWER_ETCD,
  ZOOKEEPER,
} from '../engines/index.ts'

interface Members {
  readonly addresses: readonly string[]
  stop(): Promise<void>
}

async function startEtcd(spec: EngineSpec): Promise<Members> {
  const cluster = await EtcdCluster.start(spec)
  await cluster.leader()
  return { addresses: cluster.endpoints, stop: () => cluster.stop() }
}

async function startZookeeper(): Promise<Members> {
  const ensemble = await Ensemble.start()
  return { addresses: ensemble.servers.split(','), stop: () => ensemble.stop() }
}

type OpenLog = (addresses: readonly string[], name: string) => Promise<Log>

const timeout = '20s'
const openEtcd: OpenLog = (endpoints, name) => etcdLog({ endpoints, prefix: `${name}/`, timeout })

const ENGINES: [EngineSpec, (spec: EngineSpec) => Promise<Members>, OpenLog][] = [
  [ETCD, startEtcd, openEtcd],
  [NEWER_ETCD, startEtcd, openEtcd],
  [
    ZOOKEEPER,
    startZookeeper,
    (servers, name) => zookeeperLog({ servers: servers.join(','), root: `/${name}`, timeout }),
  ],
]

for (const [spec, start, open] of ENGINES) {
  describeWith(spec, `the ${spec.name} log on three members`, () => {
    let members: Members
    let logs = 0
    beforeAll(async () => {
      members = await start(spec)
    }, 90_000)
    afterAll(() => members?.stop())

    const create = async () => {
      const name = `log${++logs}`
      let opened = 0
      // Each process talks to another member first.
      const openNext = () => {
        const first = opened++ % 3
        const { addresses } = members
        return open([...addresses.slice(first), ...addresses.slice(0, first)], name)
      }
      return { open: openNext }
    }
    describe('passes the log conformance suite', { concurrent: true, timeout: 60_000 }, () => {
      for (const { name, skip, run } of logConformance({ create })) it.skipIf(skip)(name, run)
    })
  })
}
