import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeWith, type Engine, Ensemble, ZOOKEEPER } from '../../engines/index.ts'
import { Crowd, faultsOf, TcpProxy } from '../../faults/index.ts'

const TTL_MS = 2000

describeWith(ZOOKEEPER, 'a crowd that locks the same keys of a ZooKeeper ensemble', () => {
  let ensemble: Ensemble
  let lines: TcpProxy[]
  let crowd: Crowd

  beforeAll(async () => {
    ensemble = await Ensemble.start()
    lines = await Promise.all(ensemble.members.map(({ port }) => TcpProxy.to(port)))
    crowd = await Crowd.gather({
      module: new URL('./open-zookeeper.ts', import.meta.url),
      argument: lines.map(({ port }) => `127.0.0.1:${port}`).join(','),
      prefix: 'faults/',
      ttl: TTL_MS,
    })
  }, 120_000)

  afterAll(async () => {
    for (const member of crowd?.members ?? []) member.kill()
    for (const line of lines ?? []) await line.close()
    await ensemble?.stop()
  })

  const leader = async (): Promise<Engine> => {
    for (;;) {
      const found = await ensemble.leader()
      if (found) return found
      await pause(100)
    }
  }

  const follower = async (): Promise<Engine> => {
    const leading = await leader()
    return ensemble.members.find((member) => member !== leading)!
  }

  it('goes on when the leader is killed, and nothing is wrong with what anybody was told', async () => {
    await crowd.allHold()
    const killed = await leader()
    await killed.kill()
    await crowd.allHold(60_000)
    await killed.restart()
    await crowd.allHold(60_000)
  }, 180_000)

  it('goes on when the leader, or a follower, stands still for longer than leases live', async () => {
    for (const frozen of [await leader(), await follower()]) {
      frozen.signal('SIGSTOP')
      await crowd.holdings(10, 60_000)
      await pause(1.5 * TTL_MS)
      frozen.signal('SIGCONT')
      await crowd.allHold(60_000)
    }
  }, 180_000)

  it('goes on when lines are cut, resets them, and swallow answers', async () => {
    for (const line of lines) line.cut()
    await pause(1.5 * TTL_MS)
    for (const line of lines) line.heal()
    await crowd.allHold(60_000)
    for (const line of lines) line.loseReplies()
    const lost = () => lines.some(({ repliesLost }) => repliesLost > 10)
    await crowd.until('replies were lost', 20_000, lost)
    for (const line of lines) line.heal()
    await crowd.allHold(60_000)
    lines[0]!.reset()
    await crowd.holdings(10, 60_000)
    lines[0]!.heal()
  }, 180_000)

  it('goes on when members are frozen and killed while they hold', async () => {
    const [first, second] = crowd.members
    first!.freeze()
    second!.kill()
    await crowd.holdings(10, 60_000)
    await pause(1.5 * TTL_MS)
    first!.thaw()
    await crowd.join()
    await crowd.allHold(60_000)
  }, 180_000)

  it('was never told a lie', async () => {
    const history = await crowd.leave()
    expect(history.holdings.length).toBeGreaterThan(50)
    expect(faultsOf(history)).toEqual([])
  }, 60_000)
})

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
