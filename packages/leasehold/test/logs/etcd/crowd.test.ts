import { etcdLog } from '../../../src/logs/etcd/index.ts'
import { describeWith, ETCD, EtcdCluster } from '../../engines/index.ts'
import { crowdSuite } from '../suites/crowd-suite.ts'

describeWith(ETCD, 'a crowd that locks the same keys of three etcds', () => {
  crowdSuite({
    start: async () => {
      const cluster = await EtcdCluster.start()
      await cluster.leader()
      const { members, lines, peerLines, endpoints } = cluster
      const log = await etcdLog({ endpoints: members.map(({ port }) => `127.0.0.1:${port}`) })
      return {
        ...{ members, lines, peerLines, log, argument: endpoints.join() },
        module: new URL('./open-etcd.ts', import.meta.url),
        leader: async () => members[await cluster.leader()]!,
        stop: async () => {
          await log.close()
          await cluster.stop()
        },
      }
    },
  })
})
