import { delegate, LeaseholdError } from 'leasehold/port'
import { describe, expect, it } from 'vitest'
import { HoldRecord, type LockOrPermit } from '../../src/agents/hold-record.ts'
import { HOUR, handleOf, scene, stateOf, unreadable, wanted } from './holds-scene.ts'

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

describe('what ends a hold', () => {
  it('of a pool: the maximum, too', async () => {
    const { clock, ada, bob } = await scene()
    const resources = [{ name: '5170' }]
    await ada.holds.take('ports', { resources, purpose: 'dev server' })
    for (let hour = 0; hour < 8; hour++) {
      await clock.advance(HOUR - 1)
      ada.holds.touch()
    }
    expect(stateOf({ mine: ada.holds.mine() })).toEqual([['held', undefined]])
    await clock.advance(1000)
    expect(stateOf({ mine: ada.holds.mine() })).toEqual([
      ['lost', 'it was held for 8h, the maximum'],
    ])
    expect((await bob.holds.take('ports', { purpose: 'tests' })).state).toBe('held')
  })

  it('that still waits: the idle limit, and its release', async () => {
    const { clock, store, ada, bob, waits } = await scene()
    await handleOf(ada.holds, 'k')
    const first = await waits(bob.holds, 'k')
    await bob.holds.release(first.record.handle)
    await clock.advance(10)
    expect((await store.read({ key: 'k' })).count).toBe(1)
    await waits(bob.holds, 'k')
    for (let hour = 0; hour < 2; hour++) {
      await clock.advance(HOUR)
      ada.holds.touch()
    }
    await clock.advance(10)
    expect((await store.read({ key: 'k' })).count).toBe(1)
    expect(stateOf({ mine: bob.holds.mine() })).toEqual([
      ['lost', expect.stringContaining('the idle limit')],
    ])
  })

  it('given up while its grant was on the way: it is given back', async () => {
    const note = { ref: 'r', agent: 'ada', purpose: 'x', for: ['k'] }
    const record = new HoldRecord({ handle: 'h', note, claims: [], askedAt: 0 })
    let isReleased = false
    const release = async () => {
      isReleased = true
    }
    const { signal } = new AbortController()
    let resolve = (_acquired: LockOrPermit) => {}
    const promise = new Promise<LockOrPermit>((fulfil) => {
      resolve = fulfil
    })
    const now = () => 0
    record.follow(promise, now, () => {})
    await record.release(0)
    resolve({ keys: ['k'], claimToken: 1, signal, release })
    await record.settled
    expect(isReleased).toBe(true)
    expect(record.state).toBe('released')
  })

  it('the end of its connection, after which nothing is taken', async () => {
    const { store, ada } = await scene()
    await handleOf(ada.holds, 'k')
    await ada.holds.close()
    expect((await store.read({ key: 'k' })).count).toBe(0)
    await expect(handleOf(ada.holds, 'k')).rejects.toMatchObject({ code: 'closed' })
  })

  it('nothing: a try that fails leaves no hold', async () => {
    const { store, ada, bob, open } = await scene()
    await handleOf(ada.holds, 'k')
    expect((await bob.holds.tryAcquire(wanted('k'))).state).toBe('busy')
    expect(bob.holds.mine()).toEqual([])
    const grant = () => Promise.reject(new LeaseholdError('forbidden', 'no right'))
    const cy = await open('cy', delegate(store, { grant }))
    await expect(cy.holds.acquire(wanted('k2'))).rejects.toMatchObject({ code: 'forbidden' })
    expect(cy.holds.mine()).toEqual([])
    expect(cy.holds.openCount).toBe(0)
  })

  it('of one connection make room for others: it may have 1000', async () => {
    const { ada } = await scene()
    for (let index = 0; index < 1000; index++) await handleOf(ada.holds, `k${index}`)
    await expect(handleOf(ada.holds, 'more')).rejects.toMatchObject({ code: 'limit-exceeded' })
    await ada.holds.releaseAll()
    await handleOf(ada.holds, 'more')
  })
})
