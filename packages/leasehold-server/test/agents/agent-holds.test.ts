import { Leasehold } from 'leasehold'
import {
  delegate,
  LeaseholdError,
  type LeaseStore,
  type Query,
  systemRandom as random,
} from 'leasehold/port'
import { testStore } from 'leasehold/testing'
import { describe, expect, it } from 'vitest'
import { AgentHolds, type Ceilings, Fleet } from '../../src/agents/index.ts'

async function scene() {
  const { store, clock } = testStore()
  const open = async (
    agent: string,
    through: LeaseStore = store,
    ceilings: Partial<Ceilings> = {},
  ) => {
    const leasehold = await Leasehold.open(through, { clock, holder: agent })
    const paths = { folder: '/', repository: 'shop' }
    const given = { leasehold, store: through, clock, random }
    const holds = new AgentHolds({ ...given, agent, paths, ceilings })
    return { holds, fleet: new Fleet(given, holds), leasehold }
  }
  /** A waiting acquisition that answers after its default of 0 seconds, and a second for the notice. */
  const waits = async (holds: AgentHolds, key: string) => {
    const asking = holds.acquire(wanted(key))
    await clock.advance(2000)
    const outcome = await asking
    if (outcome.state !== 'waiting') throw new Error(outcome.state)
    return outcome
  }
  return { store, clock, open, waits, ada: await open('ada'), bob: await open('bob') }
}

/** A store that fails to read these keys. */
function unreadable(store: LeaseStore, prefix: string): LeaseStore {
  const read = (query: Query) => {
    const { key, prefix: given } = query as { key?: string; prefix?: string }
    if (!(key ?? given)?.startsWith(prefix)) return store.read(query)
    return Promise.reject(new LeaseholdError('timeout', 'the store did not answer'))
  }
  return delegate(store, { read: read as LeaseStore['read'] })
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
    expect((await ada.fleet.agents()).agents).toMatchObject([
      { agent: 'ada', holds: [{ for: ['src/a.ts'] }], waits: [] },
      { agent: 'bob', holds: [], waits: [{ for: ['src/a.ts'], purpose: 'y' }] },
    ])
  })

  it('announce their turn, also if their agent has looked at them meanwhile', async () => {
    const { clock, ada, bob, waits } = await scene()
    const first = await handleOf(ada.holds, 'k')
    const { record } = await waits(bob.holds, 'k')
    expect(bob.holds.mine()).toEqual([record])
    await ada.holds.release(first)
    await clock.advance(10)
    const notices = [{ about: 'your-turn', hold: record.handle }, { about: 'ceiling' }]
    expect(await bob.holds.notices()).toMatchObject(notices)
    await bob.holds.wait(record.handle)
    expect(await bob.holds.notices()).toMatchObject([{ about: 'ceiling' }])
  })

  it('are announced by a notice if the call that took them was cancelled', async () => {
    const { clock, store, ada, bob } = await scene()
    const first = await handleOf(ada.holds, 'k')
    const call = new AbortController()
    const asking = bob.holds.acquire(wanted('k'), { wait: 40_000, signal: call.signal })
    await clock.advance(2000)
    call.abort()
    await ada.holds.release(first)
    await clock.advance(10)
    await asking
    // This one is free, so it is held before the answer is lost.
    const free = await bob.holds.acquire(wanted('free'), { signal: call.signal })
    expect(free.state).toBe('held')
    expect(await bob.holds.notices()).toMatchObject([
      { about: 'your-turn' },
      { about: 'your-turn' },
      { about: 'ceiling' },
    ])
    await clock.advance(11 * 60_000)
    for (const key of ['k', 'free']) expect((await store.read({ key })).holders).toBe(0)
  })

  it('are released if the answer that would name them fails', async () => {
    const { store, open } = await scene()
    const cy = await open('cy', unreadable(store, 'once/'))
    const claim = cy.holds.claimNext([{ key: 'task' }], { purpose: 'x' })
    await expect(claim).rejects.toMatchObject({ code: 'timeout' })
    expect((await store.read({ key: 'task' })).count).toBe(0)
    expect(cy.holds.mine()).toEqual([])
  })

  it('are told although the requests for them cannot be read', async () => {
    const { store, open } = await scene()
    const cy = await open('cy', unreadable(store, 'agents/asks/'))
    await handleOf(cy.holds, 'k')
    expect(await cy.holds.notices()).toMatchObject([{ about: 'ceiling' }])
  })

  it('that were lost stay in the notices, however much is taken and released after it', async () => {
    const { store, ada } = await scene()
    await handleOf(ada.holds, 'lost')
    const claims = await ada.fleet.breakable({ key: 'lost' })
    await store.revoke({ target: { lease: claims[0]!.lease }, by: 'bob', why: 'stuck' })
    for (let count = 0; count < 60; count++) {
      await ada.holds.release(await handleOf(ada.holds, 'k'))
    }
    expect(await ada.holds.notices()).toMatchObject([{ about: 'lost' }])
    expect(stateOf({ mine: ada.holds.mine() })).toEqual([['lost', expect.stringContaining('bob')]])
  })

  it('of other agents on the connection are not released with all of one', async () => {
    const { store, ada } = await scene()
    await ada.holds.acquire({ ...wanted('of sub'), agent: 'sub' })
    await handleOf(ada.holds, 'own')
    expect(await ada.holds.releaseAll()).toHaveLength(1)
    expect((await store.read({ key: 'own' })).holders).toBe(0)
    expect((await store.read({ key: 'of sub' })).holders).toBe(1)
    expect(await ada.holds.releaseAll('sub')).toHaveLength(1)
    expect((await store.read({ key: 'of sub' })).holders).toBe(0)
  })

  it('are not idle while their agent waits for another', async () => {
    const { store, clock, ada, open } = await scene()
    await handleOf(ada.holds, 'k')
    const bob = await open('bob', store, { idle: 4000 })
    await handleOf(bob.holds, 'other')
    const asking = bob.holds.acquire(wanted('k'), { wait: 40_000 })
    await clock.advance(43_000)
    expect((await asking).state).toBe('waiting')
    expect((await store.read({ key: 'other' })).holders).toBe(1)
  })

  it('of a task are not for the next agent if the one before has done it', async () => {
    const { clock, store, ada, bob } = await scene()
    const first = await ada.holds.once('migrate', { purpose: 'x' })
    const asking = bob.holds.once('migrate', { purpose: 'y' })
    await clock.advance(2000)
    const second = await asking
    if (first.state !== 'held' || second.state !== 'waiting') throw new Error(second.state)
    await ada.holds.release(first.record.handle, { result: 7 })
    await clock.advance(10)
    const outcome = await bob.holds.wait(second.record.handle)
    expect(outcome).toMatchObject({ state: 'done', done: { result: 7, by: 'ada' } })
    expect((await store.read({ key: 'migrate' })).count).toBe(0)
  })

  it('are done only if they are tasks that are held', async () => {
    const { ada, bob, waits } = await scene()
    const file = await ada.holds.acquire({ paths: ['/src/a.ts'], purpose: 'x' })
    if (file.state !== 'held') throw new Error(file.state)
    const done = ada.holds.release(file.record.handle, {})
    await expect(done).rejects.toThrow('has no task: only a key can be done')
    const task = await handleOf(ada.holds, 'task')
    const { record } = await waits(bob.holds, 'task')
    await expect(bob.holds.release(record.handle, {})).rejects.toThrow('is still waiting')
    await ada.holds.release(task, { result: 1 })
    expect(await bob.leasehold.onceResult('task')).toMatchObject({ result: 1 })
  })
})

describe('a refusal', () => {
  it('says how many are ahead, who of them holds and who waits', async () => {
    const { ada, open, waits } = await scene()
    await handleOf(ada.holds, 'k')
    for (let index = 0; index < 11; index++) {
      const { position, ahead } = await waits((await open(`agent-${index}`)).holds, 'k')
      expect(position).toBe(index + 1)
      expect(ahead).toHaveLength(Math.min(8, index + 1))
      expect(ahead[0]).toMatchObject({ agent: 'ada', state: 'holds', purpose: 'work on k' })
      expect(ahead[0]!.until).not.toBeNull()
      if (index > 0) {
        expect(ahead[1]).toMatchObject({ agent: 'agent-0', state: 'waits', until: null })
      }
    }
  })

  it('of tasks says who has them, and how many were not tried when the time was over', async () => {
    const { store, clock, open, ada } = await scene()
    for (const key of ['a', 'b']) await handleOf(ada.holds, key)
    const tasks = ['a', 'b'].map((key) => ({ key }))
    const grant: LeaseStore['grant'] = async (request) => {
      await clock.advance(4900)
      return store.grant(request)
    }
    const busy = await ada.holds.claimNext(tasks, { purpose: 'x' })
    expect(busy).toMatchObject({
      state: 'busy',
      skipped: { busy: 2, untried: 0 },
      ahead: [
        { agent: 'ada', key: 'a', purpose: 'work on a', state: 'holds' },
        { agent: 'ada', key: 'b' },
      ],
    })
    const slow = await open('slow', delegate(store, { grant }))
    const many = Array.from({ length: 15 }, () => tasks[0]!)
    const late = await slow.holds.claimNext(many, { purpose: 'x' })
    expect(late).toMatchObject({ state: 'busy', skipped: { busy: 10, untried: 5 } })
  })

  it('comes within 50 s, however long the agent wants to wait', async () => {
    const { clock, ada, bob } = await scene()
    await handleOf(ada.holds, 'k')
    const began = clock.now()
    let took = Infinity
    const asking = bob.holds.acquire(wanted('k'), { wait: 3_600_000 }).then(() => {
      took = clock.now() - began
    })
    await clock.advance(60_000)
    await asking
    expect(took).toBeGreaterThan(45_000)
    expect(took).toBeLessThanOrEqual(50_000)
  })

  it('of a pool names the resource as the store does, and the place among the waiters', async () => {
    const { clock, store, ada, bob, open } = await scene()
    const resources = [{ name: '5170' }]
    await ada.holds.take('ports', { resources, purpose: 'dev server' })
    const places: unknown[] = []
    for (const { holds } of [bob, await open('cy')]) {
      const asking = holds.take('ports', { purpose: 'tests' })
      await clock.advance(2000)
      const outcome = await asking
      if (outcome.state !== 'waiting') throw new Error(outcome.state)
      places.push(outcome.position)
      const [holder] = outcome.ahead
      expect(holder).toMatchObject({ agent: 'ada', purpose: 'dev server', state: 'holds' })
      expect((await store.read({ key: holder!.key })).holders).toBe(1)
    }
    expect(places).toEqual([0, 1])
  })
})

describe('a request to give something back', () => {
  it('waits for a holder that is silent for as long as the idle limit allows', async () => {
    const { clock, ada, bob } = await scene()
    await handleOf(ada.holds, 'k')
    await bob.fleet.askBack({ key: 'k' }, 'the demo')
    await clock.advance(2 * HOUR - 60_000)
    expect(await ada.holds.notices()).toMatchObject([
      { about: 'asked-back', text: expect.stringContaining('bob asked') },
      { about: 'ceiling' },
    ])
  })

  it('is made once, and not by too many', async () => {
    const { ada, bob } = await scene()
    await handleOf(ada.holds, 'k')
    const asked = async () =>
      (await ada.holds.notices()).filter(({ about }) => about === 'asked-back').length
    for (let count = 0; count < 20; count++) await bob.fleet.askBack({ key: 'k' }, 'the demo')
    expect(await asked()).toBe(1)
    for (let count = 0; count < 9; count++) await bob.fleet.askBack({ key: 'k' }, `demo ${count}`)
    const another = bob.fleet.askBack({ key: 'k' }, 'again')
    await expect(another).rejects.toMatchObject({ code: 'limit-exceeded' })
    expect(await asked()).toBe(10)
  })

  it('reaches its hold, also if the agent has many', async () => {
    const { ada, bob } = await scene()
    for (let index = 0; index < 20; index++) await handleOf(ada.holds, `k${index}`)
    await bob.fleet.askBack({ key: 'k13' }, 'the demo')
    const [notice, ...others] = await ada.holds.notices()
    expect(notice).toMatchObject({ about: 'asked-back' })
    expect(notice!.text).toContain('for k13 back')
    expect(others).toMatchObject([{ about: 'ceiling' }])
  })
})

describe('the fleet', () => {
  it('lists what agents hold among many other keys, and says if it could not read all', async () => {
    const { store, ada } = await scene()
    const fill = async (from: number, to: number) => {
      for (let index = from; index < to; index += 250) {
        const claims = Array.from({ length: 250 }, (_, at) => ({ key: `done/${index + at}` }))
        await store.grant({ holder: 'program', ttl: HOUR, claims })
      }
    }
    await fill(0, 2500)
    await handleOf(ada.holds, 'k')
    const held = [{ agent: 'ada', holds: [{ for: ['k'] }] }]
    expect(await ada.fleet.agents()).toMatchObject({ agents: held, more: false })
    expect((await ada.fleet.who({ prefix: 'done/' })).more).toBe(true)
    expect((await ada.fleet.who({ prefix: 'k' })).more).toBe(false)
    await fill(2500, 10_250)
    expect(await ada.fleet.agents()).toMatchObject({ agents: [], more: true })
  })

  it('is announced to under a bounded number of names', async () => {
    const { ada } = await scene()
    const announce = (index: number) => ada.fleet.announce({ agent: `a${index}`, doing: 'x' })
    for (let index = 0; index < 100; index++) await announce(index)
    await expect(announce(100)).rejects.toMatchObject({ code: 'limit-exceeded' })
    await announce(99)
  })

  it('is asked about exactly one key, path or prefix', async () => {
    const { ada } = await scene()
    for (const target of [{}, { key: 'a', path: '/b' }, { key: 'a', prefix: 'b' }]) {
      await expect(ada.fleet.who(target)).rejects.toThrow('give one of key')
    }
  })
})
