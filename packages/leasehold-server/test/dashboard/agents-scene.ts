import { Leasehold } from 'leasehold'
import { systemClock as clock, type LeaseStore, systemRandom as random } from 'leasehold/port'
import { AgentHolds, Fleet } from '../../src/agents/index.ts'

/** An agent in this process, on the modules that `leasehold mcp` uses. */
export async function openAgent(store: LeaseStore, agent: string) {
  const leasehold = await Leasehold.open(store, { holder: agent, clock, random })
  const paths = { folder: '/', repository: 'shop' }
  const holds = new AgentHolds({ leasehold, store, clock, random, agent, paths })
  const fleet = new Fleet({ leasehold, store, random, clock }, holds)
  const close = async () => {
    await holds.close()
    await leasehold.close()
  }
  return { holds, fleet, leasehold, close, [Symbol.asyncDispose]: close }
}

/**
 * Three agents: ada edits two files and holds a port, bo waits for one of them, cy waits behind bo.
 * Somebody has asked ada for it back.
 */
export async function openAgents(store: LeaseStore) {
  const [ada, bo, cy] = [
    await openAgent(store, 'ada'),
    await openAgent(store, 'bo'),
    await openAgent(store, 'cy'),
  ]
  await ada.fleet.announce({
    doing: 'the checkout',
    paths: ['src/checkout'],
    capabilities: ['css', 'typescript'],
  })
  await bo.fleet.announce({ doing: 'prices in the cart' })
  await ada.holds.acquire({
    paths: ['/src/cart.ts', '/src/checkout'],
    purpose: 'rename Cart to Basket',
  })
  const resources = [{ name: '5170' }]
  await ada.holds.take('ports', { resources, purpose: 'dev server' })
  const want = { paths: ['/src/cart.ts'], purpose: 'round prices' }
  await bo.holds.acquire(want)
  await cy.holds.acquire({ ...want, purpose: 'format the file' })
  await bo.fleet.askBack({ path: '/src/cart.ts' }, 'the demo is at noon')
  const close = async () => {
    for (const agent of [cy, bo, ada]) await agent.close()
  }
  return { ada, bo, cy, close, [Symbol.asyncDispose]: close }
}
