import { zookeeperLog } from '../../../src/logs/zookeeper/index.ts'
import { describeWith, Ensemble, ZOOKEEPER } from '../../engines/index.ts'
import { TcpProxy } from '../../faults/index.ts'
import { crowdSuite } from '../suites/crowd-suite.ts'

describeWith(ZOOKEEPER, 'a crowd that locks the same keys of a ZooKeeper ensemble', () => {
  crowdSuite({
    notRestored: 'it takes long to elect twice more; others on this suite are restored',
    start: async () => {
      const ensemble = await Ensemble.start()
      const { members, servers } = ensemble
      const lines = await Promise.all(members.map(({ port }) => TcpProxy.to(port)))
      const log = await zookeeperLog({ servers, root: '/faults' })
      return {
        ...{ members, lines, log },
        module: new URL('./open-zookeeper.ts', import.meta.url),
        argument: lines.map(({ port }) => `127.0.0.1:${port}`).join(),
        leader: () => ensemble.leader(),
        stop: async () => {
          await log.close()
          for (const line of lines) await line.close()
          await ensemble.stop()
        },
      }
    },
  })
})
