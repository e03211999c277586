import { Leasehold } from 'leasehold'
import { systemRandom as random } from 'leasehold/port'
import { testStore } from 'leasehold/testing'
import { describe, expect, it } from 'vitest'
import { AgentHolds, Fleet } from '../../src/agents/index.ts'

async function scene() {
  const { store, clock } = testStore()
  const open = async (agent: string) => {
    const leasehold = await Leasehold.open(store, { clock, holder: agent })
    const paths = { folder: '/', repository: 'shop' }
    const holds = new AgentHolds({ leasehold, store, clock, random, agent, paths })
    return { holds, fleet: new Fleet({ leasehold, store, random, clock }, holds), leasehold }
  }
  return { store, clock, ada: await open('ada'), bob: await open('bob') }
}

const wanted = (key: string) => ({ keys: [key], purpose: `work on ${key}` })
const HOUR = 3_600_000

async function handleOf(holds: AgentHolds, key: string): Promise<string> {
  const outcome = await holds.acquire(wanted(key))
  if (outcome.state !== 'held' && outcome.state !== 'waiting') throw new Error(outcome.state)
  return outcome.record.handle
}

const stateOf = ({ mine }: { mine: ReturnType<AgentHolds['mine']> }) =>
  mine.map(({ state, why }) => [state, why])

describe('the holds of a connection', () => {
  it('survive the silence of the model, up to the idle limit', async () => {
    const { store, clock, ada } = await scene()
    await handleOf(ada.holds, 'k')
    await clock.advance(2 * HOUR - 1000)
    expect((await store.read({ key: 'k' })).holders).toBe(1)
    ada.holds.touch()
    await clock.advance(2 * HOUR - 1000)
    expect((await store.read({ key: 'k' })).holders).toBe(1)
    await clock.advance(2000)
    expect((await store.read({ key: 'k' })).holders).toBe(0)
    expect(await ada.holds.notices()).toMatchObject([
      { about: 'lost', text: expect.stringContaining('no leasehold tool was called for 2h') },
    ])
    expect(stateOf({ mine: ada.holds.mine() })).toEqual([
      ['lost', expect.stringContaining('idle limit')],
    ])
    expect(await ada.holds.notices()).toEqual([])
  })

  it('end at the maximum, however busy the model is', async () => {
    const { store, clock, ada } = await scene()
    await handleOf(ada.holds, 'k')
    for (let hour = 0; hour < 8; hour++) {
      expect((await store.read({ key: 'k' })).holders).toBe(1)
      await clock.advance(HOUR)
      ada.holds.touch()
    }
    await clock.advance(1000)
    expect((await store.read({ key: 'k' })).holders).toBe(0)
    expect(stateOf({ mine: ada.holds.mine() })).toEqual([
      ['lost', expect.stringContaining('as long as it may be')],
    ])
  })

  it('that came after waiting are released if nobody takes them up', async () => {
    const { store, clock, ada, bob } = await scene()
    const first = await handleOf(ada.holds, 'k')
    const waiting = bob.holds.acquire(wanted('k'))
    await clock.advance(2000)
    const outcome = await waiting
    expect(outcome).toMatchObject({ state: 'waiting', position: 1 })
    await ada.holds.release(first)
    await clock.advance(10)
    expect(await bob.holds.notices()).toMatchObject([{ about: 'your-turn' }, { about: 'ceiling' }])
    await clock.advance(11 * 60_000)
    expect((await store.read({ key: 'k' })).holders).toBe(0)
    expect(stateOf({ mine: bob.holds.mine() })).toEqual([
      ['lost', expect.stringContaining('nobody called wait')],
    ])
  })

  it('are released by their handle only, and only once', async () => {
    const { store, ada, bob } = await scene()
    const handle = await handleOf(ada.holds, 'k')
    await expect(bob.holds.release(handle)).rejects.toMatchObject({ code: 'invalid-argument' })
    expect((await store.read({ key: 'k' })).holders).toBe(1)
    await ada.holds.release(handle)
    const next = await handleOf(bob.holds, 'k')
    await ada.holds.release(handle)
    expect((await store.read({ key: 'k' })).holders).toBe(1)
    await bob.holds.release(next)
  })

  it('are not marked as done after they were lost', async () => {
    const { store, ada, bob } = await scene()
    const handle = await handleOf(ada.holds, 'task')
    const claims = await bob.fleet.breakable({ key: 'task' })
    await store.revoke({ target: { lease: claims[0]!.lease }, by: 'bob', why: 'stuck' })
    await expect.poll(() => ada.holds.mine()[0]!.state).toBe('lost')
    await expect(ada.holds.release(handle, { result: 1 })).rejects.toMatchObject({
      code: 'lost',
      message: expect.stringContaining('It is not marked as done'),
    })
    const next = await bob.holds.claimNext([{ key: 'task' }], { purpose: 'again' })
    expect(next.state).toBe('held')
  })

  it('go to the first task that the agent is able to do', async () => {
    const { ada } = await scene()
    const tasks = [
      { key: 'ios', needs: ['mac'] },
      { key: 'web', needs: ['css'] },
    ]
    const first = await ada.holds.claimNext(tasks, { purpose: 'x', capabilities: ['css'] })
    expect(first).toMatchObject({ state: 'held', skipped: { unable: 1 } })
    const second = await ada.holds.claimNext(tasks, { purpose: 'x', capabilities: ['css'] })
    expect(second).toMatchObject({ state: 'busy', skipped: { unable: 1, busy: 1 } })
  })

  it('give way to nobody by accident: a second request for the same key waits for the first', async () => {
    const { clock, ada } = await scene()
    const first = await handleOf(ada.holds, 'k')
    const second = ada.holds.acquire(wanted('k'))
    await clock.advance(2000)
    expect(await second).toMatchObject({
      state: 'waiting',
      ahead: [{ agent: 'ada', yours: first }],
    })
  })

  it('of crossing folders and files are taken without a deadlock', async () => {
    const { clock, ada, bob } = await scene()
    const one = ada.holds.acquire({ paths: ['/src/a', '/lib'], purpose: 'x' }, { wait: 50_000 })
    const two = bob.holds.acquire({ paths: ['/lib/b', '/src'], purpose: 'y' }, { wait: 50_000 })
    const first = await one
    expect(first.state).toBe('held')
    await ada.holds.releaseAll()
    await clock.advance(10)
    expect((await two).state).toBe('held')
  })

  it('are listed as waiting until all their keys are held, the folders above a file included', async () => {
    const { clock, ada, bob } = await scene()
    await ada.holds.acquire({ paths: ['/src/a.ts'], purpose: 'x' })
    const waiting = bob.holds.acquire({ paths: ['/src/a.ts'], purpose: 'y' })
    await clock.advance(2000)
    await waiting
    expect(await ada.fleet.agents()).toMatchObject([
      { agent: 'ada', holds: [{ for: ['src/a.ts'] }], waits: [] },
      { agent: 'bob', holds: [], waits: [{ for: ['src/a.ts'], purpose: 'y' }] },
    ])
  })
})
