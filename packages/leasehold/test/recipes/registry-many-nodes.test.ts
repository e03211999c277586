import { expect, it } from 'vitest'
import { Leasehold } from '../../src/index.ts'
import { testStore } from '../../src/testing/index.ts'

it('a watch of nodes remembers the last 10000 that stopped: an older one that returns is new to it', async () => {
  const { store, clock } = testStore()
  const { registry } = await Leasehold.open(store, { clock })
  const told: string[] = []
  const watch = registry.nodes.watch({
    onStarted: ({ id }) => told.push(`${id} started`),
    onReturned: ({ id }) => told.push(`${id} returned`),
  })
  await clock.advance(10)
  await watch.ready
  const claim = async (ids: readonly string[]) => {
    const { lease } = (await store.grant({ holder: 'x', ttl: 3_600_000 })) as { lease: string }
    for (let at = 0; at < ids.length; at += 50) {
      const claims = ids.slice(at, at + 50).map((id) => ({ key: `nodes/${id}` }))
      await store.claim({ lease, claims })
    }
    await clock.advance(10)
    return lease
  }
  const all = Array.from({ length: 10_000 }, (_, at) => `n${at}`)
  for (const ids of [['oldest', 'second'], all.slice(0, -1)]) {
    await store.revoke({ target: { lease: await claim(ids) } })
    await clock.advance(10)
  }
  told.splice(0)
  await claim(['second', 'oldest'])
  expect(told).toEqual(['second returned', 'oldest started'])
})
