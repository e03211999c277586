import { describe, expect, it } from 'vitest'
import { MemoryLog } from '../../src/log/index.ts'
import type { Replica } from '../../src/replica/replica.ts'
import { TestClock } from '../../src/testing/index.ts'
import { openReplica } from './open-replicas.ts'

async function openAll(count: number) {
  const shared = new MemoryLog()
  const clock = new TestClock()
  const replicas: Replica[] = []
  for (let at = 0; at < count; at++) replicas.push(await openReplica(shared, clock))
  await clock.settle()
  return { clock, replicas }
}

const grant = (replica: Replica) =>
  replica.propose({ do: 'grant', request: { holder: 'h', ttl: 60_000 } })

/** Changes a replica's state without the log, as faulty memory would. */
function corrupt({ machine }: Replica): void {
  machine.kernel.grant({ holder: 'nobody', ttl: 1000 }, machine.time)
}

describe('a replica whose state differs from that of the others', () => {
  it('stops and says why, and the others continue', async () => {
    const { clock, replicas } = await openAll(3)
    const [wrong, ...right] = replicas as [Replica, Replica, Replica]
    corrupt(wrong)
    const position = wrong.machine.position
    const calls = right.map(grant)
    await clock.advance(100)
    for (const call of calls) expect(await call).toMatchObject({ outcome: 'granted' })
    await expect(grant(wrong)).rejects.toMatchObject({ code: 'storage-damaged' })
    await expect(wrong.caughtUp()).rejects.toThrow(`at position ${position + 1} its checksum is`)
    await expect(wrong.caughtUp()).rejects.toThrow('1 agree with it, itself included, and 2 do not')
    for (const replica of right) {
      await replica.caughtUp()
      expect(replica.machine.kernel.leases).toBe(2)
    }
  })

  it('answers no call before the vote has decided which replica is right', async () => {
    const { clock, replicas } = await openAll(2)
    const [wrong, right] = replicas as [Replica, Replica]
    corrupt(wrong)
    for (const replica of replicas) grant(replica).catch(() => {})
    await clock.advance(10)
    let answers = 0
    const calls = replicas.flatMap((replica) => [grant(replica), replica.caughtUp()])
    for (const call of calls) {
      call.then(
        () => answers++,
        () => {},
      )
    }
    const [, read] = calls
    await clock.advance(1900)
    expect(answers).toBe(0)
    await clock.advance(100)
    // Neither has a majority.
    await expect(grant(wrong)).rejects.toMatchObject({ code: 'storage-damaged' })
    await expect(grant(right)).rejects.toMatchObject({ code: 'storage-damaged' })
    await expect(read).rejects.toMatchObject({ code: 'storage-damaged' })
  })

  it('proposes entries that the others do not apply', async () => {
    const { clock, replicas } = await openAll(3)
    const [wrong, ...right] = replicas as [Replica, Replica, Replica]
    corrupt(wrong)
    grant(wrong).catch(() => {})
    await clock.advance(3000)
    for (const replica of right) {
      await replica.caughtUp()
      expect(replica.machine.kernel.leases).toBe(0)
    }
  })
})
