import { memoryStore } from 'leasehold/memory'
import { describe, expect, it } from 'vitest'
import { loadKeys } from '../../../dashboard/live/load-store.ts'
import {
  type AgentRow,
  agentsOf,
  findAgents,
  waitersOf,
  waitsOf,
} from '../../../dashboard/model/agents.ts'
import { Mirror } from '../../../dashboard/model/mirror.ts'
import { openAgent, openAgents } from '../agents-scene.ts'

async function fleetNow(store = memoryStore()) {
  const fleet = await openAgents(store)
  const read = async (): Promise<AgentRow[]> => {
    const mirror = new Mirror()
    await loadKeys(store, '', mirror, () => {})
    return agentsOf(mirror, Date.now())
  }
  return { store, fleet, read, agents: await read() }
}

const NO_FILTER = { text: '', isWaiting: false, isAsked: false }

describe('the agents of the dashboard', () => {
  it('have their work, holds, waits and requests', async () => {
    const { store, fleet, read, agents } = await fleetNow()
    expect(agents).toMatchObject([
      {
        name: 'ada',
        doing: 'the checkout',
        paths: ['src/checkout'],
        capabilities: ['css', 'typescript'],
        holds: [
          {
            things: ['src/cart.ts', 'src/checkout'],
            purpose: 'rename Cart to Basket',
            isShared: false,
            asks: [{ by: 'bo', why: 'the demo is at noon' }],
          },
          { things: ['ports/5170'], purpose: 'dev server', pool: 'ports', asks: [] },
        ],
        waits: [],
      },
      { name: 'bo', doing: 'prices in the cart', holds: [], waits: [{ things: ['src/cart.ts'] }] },
      { name: 'cy', doing: undefined, holds: [], waits: [{ purpose: 'format the file' }] },
    ])
    const [ada] = agents
    expect(ada!.holds[0]!.until - ada!.holds[0]!.since).toBe(8 * 3_600_000)
    await fleet.close()
    expect(await read()).toEqual([])
    await store.close()
  })

  it('wait for whoever is ahead, the holders first', async () => {
    const { store, fleet, agents } = await fleetNow()
    const [bo, cy] = waitsOf(agents)
    expect(bo!.ahead).toMatchObject([
      { agent: 'ada', isHeld: true, hold: { purpose: 'rename Cart to Basket' } },
    ])
    expect(cy!.ahead).toMatchObject([
      { agent: 'ada', isHeld: true },
      { agent: 'bo', isHeld: false },
    ])
    expect([...waitersOf(agents).values()]).toEqual([['bo', 'cy']])
    await fleet.close()
    await store.close()
  })

  it('wait also for a holder that is not an agent', async () => {
    const store = memoryStore()
    await store.grant({ holder: 'ci', ttl: 60_000, claims: [{ key: 'repo/shop/src/cart.ts' }] })
    const bo = await openAgent(store, 'bo')
    await bo.holds.acquire({ paths: ['/src/cart.ts'], purpose: 'round prices' })
    const mirror = new Mirror()
    await loadKeys(store, '', mirror, () => {})
    const [wait] = waitsOf(agentsOf(mirror, Date.now()))
    expect(wait!.ahead).toMatchObject([
      { agent: 'ci', isHeld: true, hold: undefined, key: 'repo/shop/src/cart.ts' },
    ])
    await bo.close()
    await store.close()
  })

  it('are found by name, work, file, and by what happens to them', async () => {
    const { store, fleet, agents } = await fleetNow()
    const found = (filter: object) =>
      findAgents(agents, { ...NO_FILTER, ...filter }).map(({ name }) => name)
    expect(found({})).toEqual(['ada', 'bo', 'cy'])
    expect(found({ text: 'BASKET' })).toEqual(['ada'])
    expect(found({ text: 'cart.ts' })).toEqual(['ada', 'bo', 'cy'])
    expect(found({ text: 'prices in' })).toEqual(['bo'])
    expect(found({ isWaiting: true })).toEqual(['bo', 'cy'])
    expect(found({ isAsked: true })).toEqual(['ada'])
    await fleet.close()
    await store.close()
  })
})
