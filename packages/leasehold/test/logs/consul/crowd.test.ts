import { consulLog } from '../../../src/logs/consul/index.ts'
import { CONSUL, ConsulCluster, describeWith } from '../../engines/index.ts'
import { crowdSuite } from '../suites/crowd-suite.ts'

describeWith(CONSUL, 'a crowd that locks the same keys on three Consul servers', () => {
  crowdSuite({
    notRestored: 'it takes long to elect twice more; others on this suite are restored',
    start: async () => {
      const cluster = await ConsulCluster.start()
      await cluster.leader()
      const { members, lines } = cluster
      const log = await consulLog({
        endpoints: members.map(({ port }) => `http://127.0.0.1:${port}`),
      })
      return {
        ...{ members, lines, log, leader: () => cluster.leader() },
        module: new URL('./open-consul.ts', import.meta.url),
        argument: lines.map(({ port }) => `http://127.0.0.1:${port}`).join(),
        stop: async () => {
          await log.close()
          await cluster.stop()
        },
      }
    },
  })
})
