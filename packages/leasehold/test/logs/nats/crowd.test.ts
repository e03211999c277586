import { connect } from '@nats-io/transport-node'
import type { Log } from '../../../src/log/index.ts'
import { natsLog } from '../../../src/logs/nats/index.ts'
import { describeWith, NatsCluster, NEWER_NATS } from '../../engines/index.ts'
import { TcpProxy } from '../../faults/index.ts'
import { crowdSuite } from '../suites/crowd-suite.ts'

describeWith(NEWER_NATS, 'a crowd that locks the same keys on three NATS servers', () => {
  crowdSuite({
    notRestored: 'it takes long to elect twice more; others on this suite are restored',
    start: async () => {
      const cluster = await NatsCluster.start()
      const { members, servers, peerLines } = cluster
      const lines = await Promise.all(members.map(({ port }) => TcpProxy.to(port)))
      const client = await connect({ servers, maxReconnectAttempts: -1, reconnectTimeWait: 50 })
      // The servers are ready before they have elected one that may create streams.
      let log: Log | undefined
      while (!log) log = await natsLog(client, { replicas: 3 }).catch(() => undefined)
      return {
        ...{ members, lines, peerLines, log },
        module: new URL('./open-nats.ts', import.meta.url),
        argument: lines.map(({ port }) => `127.0.0.1:${port}`).join(),
        leader: () => cluster.leader(client, 'leasehold'),
        stop: async () => {
          await log.close()
          await client.close()
          for (const line of lines) await line.close()
          await cluster.stop()
        },
      }
    },
  })
})
