import { memoryStore } from 'leasehold/memory'
import { systemClock, systemRandom } from 'leasehold/port'
import { describe, expect, it } from 'vitest'
import { startConsulGateway } from '../../../src/gateways/consul/index.ts'
import { quiet } from '../view-scene.ts'
import { PatroniCluster, patroni, TTL_S } from './patroni-cluster.ts'

/** Each takes up to the ttl. By hand: LEASEHOLD_FAILOVERS=10. */
const FAILOVERS = Number(process.env['LEASEHOLD_FAILOVERS'] ?? 1)

// Skipped without Patroni: scripts/engines.sh installs it.
describe.skipIf(patroni === undefined && process.env['CI'] !== 'true')(
  'Patroni 3 on the Consul API',
  () => {
    it(
      'fails over when a node crashes, and never has two writable leaders',
      async () => {
        const store = memoryStore()
        const parts = { clock: systemClock, random: systemRandom, log: quiet }
        const gateway = await startConsulGateway({ ...parts, store, host: '127.0.0.1', port: 0 })
        const cluster = new PatroniCluster()
        const took: number[] = []
        try {
          await cluster.start(gateway.port)
          for (let at = 0; at < FAILOVERS; at++) {
            const leader = await cluster.leader()
            await cluster.followed(leader)
            const before = performance.now()
            await cluster.crash(leader)
            expect(await cluster.leader(leader)).toBe(1 - leader)
            took.push(performance.now() - before)
            cluster.restart(leader)
          }
          expect(cluster.samples).toBeGreaterThan(0)
          expect(cluster.twoLeaders).toBe(0)
          console.info(
            `failovers took ${took.map((ms) => (ms / 1000).toFixed(1)).join(', ')} s; ttl ${TTL_S} s; ${cluster.samples} samples`,
          )
        } catch (error) {
          console.error(cluster.logs())
          throw error
        } finally {
          await cluster.stop()
          await gateway.close()
          await store.close()
        }
      },
      400_000 + FAILOVERS * 400_000,
    )
  },
)
