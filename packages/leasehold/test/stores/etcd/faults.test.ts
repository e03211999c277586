import * as grpc from '@grpc/grpc-js'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Event, Granted, LeaseStore } from '../../../src/port/index.ts'
import { etcdStore } from '../../../src/stores/etcd/index.ts'
import { describeWith, ETCD, EtcdCluster } from '../../engines/index.ts'
import { Crowd, faultsOf } from '../../faults/index.ts'

/** Long enough for an election and for a lease that must run out, on a busy machine. */
const LONG_MS = 60_000

describeWith(ETCD, 'a crowd that locks the same keys of three etcds', () => {
  let cluster: EtcdCluster
  beforeAll(async () => {
    cluster = await EtcdCluster.start()
    await cluster.leader()
  })
  afterAll(() => cluster.stop())

  const gather = (prefix: string) =>
    Crowd.gather({
      module: new URL('./open-etcd.ts', import.meta.url),
      argument: cluster.endpoints.join(','),
      prefix,
      members: 4,
    })

  it('lets what was claimed through one member be seen, watched and released through the others', async () => {
    const [one, two, three] = cluster.endpoints.map((endpoints) =>
      etcdStore({ grpc, endpoints, timeout: '30s' }),
    ) as [LeaseStore, LeaseStore, LeaseStore]
    const events: Event[] = []
    await new Promise<void>((resolve) => {
      three.watch({ prefix: 'smoke/' }, (notice) => {
        if (notice.type === 'watching') resolve()
        if (notice.type === 'events') events.push(...notice.events)
      })
    })
    const claims = [{ key: 'smoke/key' }]
    const first = (await one.grant({ holder: 'a', ttl: 60_000, claims })) as Granted
    const second = (await two.grant({ holder: 'b', ttl: 60_000, claims })) as Granted
    expect([first.holds, second.holds]).toEqual([true, false])
    const turn = new Promise<number>((resolve) => {
      three.watch({ lease: second.lease }, (notice) => {
        if (notice.type === 'holds') resolve(notice.token)
        if (notice.type === 'standing') {
          void two.release({ lease: first.lease, keys: ['smoke/key'], token: first.token })
        }
      })
    })
    expect(await turn).toBe(second.token)
    expect(await one.renew([first.lease, second.lease])).toEqual({ lost: [], capped: [] })
    await three.revoke({ target: { lease: second.lease }, by: 'admin' })
    await expect
      .poll(() => events.map(({ type, end }) => end?.reason ?? type))
      .toEqual([...['claimed', 'claimed', 'released', 'revoked']])
    for (const store of [one, two, three]) await store.close()
  }, 90_000)

  it('finds nothing wrong when lines are cut, replies lost, clients frozen and killed', async () => {
    const crowd = await gather('clients/')
    await crowd.allHold(LONG_MS)
    const [first, second] = crowd.members
    first!.freeze()
    await crowd.holdings(10, LONG_MS)
    for (const line of cluster.lines) line.cut('to-client')
    await pause(2500)
    for (const line of cluster.lines) line.heal()
    first!.thaw()
    second!.kill()
    await crowd.holdings(10, LONG_MS)
    for (const line of cluster.lines) line.loseReplies()
    const lost = () => cluster.lines.some(({ repliesLost }) => repliesLost > 2)
    await crowd.until('replies were lost', LONG_MS, lost)
    for (const line of cluster.lines) line.heal()
    for (const line of cluster.lines) line.reset()
    await pause(300)
    for (const line of cluster.lines) line.heal()
    await crowd.join()
    await crowd.allHold(LONG_MS)
    expect(faultsOf(await crowd.leave())).toEqual([])
  }, 240_000)

  it('finds nothing wrong when members are killed and frozen and cut off from each other', async () => {
    const crowd = await gather('members/')
    await crowd.allHold(LONG_MS)
    const killed = await cluster.leader()
    await cluster.members[killed]!.kill()
    await crowd.holdings(10, LONG_MS)
    await cluster.members[killed]!.restart()
    const frozen = await cluster.leader()
    cluster.members[frozen]!.signal('SIGSTOP')
    await crowd.holdings(10, LONG_MS)
    cluster.members[frozen]!.signal('SIGCONT')
    const follower = ((await cluster.leader()) + 1) % 3
    cluster.members[follower]!.signal('SIGSTOP')
    await crowd.holdings(10, LONG_MS)
    cluster.members[follower]!.signal('SIGCONT')
    // None has a majority: nobody is granted anything, and nobody believes for longer than its ttl.
    for (const line of cluster.peerLines) line.cut()
    await pause(4000)
    for (const line of cluster.peerLines) line.heal()
    await crowd.allHold(LONG_MS)
    const heard = await cluster.leader()
    cluster.peerLines[heard]!.cut()
    await crowd.holdings(10, LONG_MS)
    cluster.peerLines[heard]!.heal()
    await crowd.allHold(LONG_MS)
    expect(faultsOf(await crowd.leave())).toEqual([])
  }, 400_000)
})

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
