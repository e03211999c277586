import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeWith, ETCD, EtcdCluster, etcdCall } from '../../engines/index.ts'
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
    // Snapshots were saved and the log was trimmed meanwhile.
    const key = Buffer.from('leasehold/trimmed').toString('base64')
    const { port } = cluster.members[await cluster.leader()]!
    expect(await etcdCall(port, 'kv/range', { key })).toMatchObject({ count: '1' })
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
