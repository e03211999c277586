import { expect, it } from 'vitest'
import { Leasehold } from '../../../../src/index.ts'
import { testStore } from '../../../../src/testing/index.ts'

it('a watch of nodes remembers the last 10000 that stopped: an older one that returns is new to it', async () => {
  const { store, clock } = testStore()
  const { registry } = await Leasehold.open(store, { clock })
  const reported: string[] = []
  const watch = registry.nodes.watch({
    onStarted: ({ id }) => reported.push(`${id} started`),
    onReturned: ({ id }) => reported.push(`${id} returned`),
  })
  await clock.advance(10)
  await watch.ready
  const claim = async (ids: readonly string[]) => {
    const { lease } = (await store.grant({ holder: 'x', ttl: 3_600_000 })) as { lease: string }
    await store.claim({ lease, claims: ids.map((id) => ({ key: `nodes/${id}` })) })
    await clock.advance(10)
    return lease
  }
  const stop = async (ids: readonly string[]) => {
    await store.revoke({ target: { lease: await claim(ids) } })
    await clock.advance(10)
  }
  await stop(['oldest', 'second'])
  const others = Array.from({ length: 9999 }, (_, at) => `n${at}`)
  // In batches: a lease has a limit of claims, and a search among all ends takes long.
  for (let at = 0; at < others.length; at += 50) await stop(others.slice(at, at + 50))
  reported.splice(0)
  await claim(['second', 'oldest'])
  expect(reported).toEqual(['second returned', 'oldest started'])
})
