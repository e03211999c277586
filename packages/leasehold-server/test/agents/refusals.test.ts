import { delegate, type LeaseStore } from 'leasehold/port'
import { describe, expect, it } from 'vitest'
import { HOUR, handleOf, scene, wanted } from './holds-scene.ts'

describe('a refusal', () => {
  it('names only those who exclude: readers do not wait for readers', async () => {
    const { clock, ada, bob, open } = await scene()
    const cy = await open('cy')
    const shared = { ...wanted('k'), mode: 'shared' } as const
    await ada.holds.acquire(shared)
    const writing = bob.holds.acquire(wanted('k'))
    await clock.advance(2000)
    expect(await writing).toMatchObject({ position: 1, ahead: [{ agent: 'ada' }] })
    const reading = cy.holds.acquire(shared)
    await clock.advance(2000)
    expect(await reading).toMatchObject({ position: 1, ahead: [{ agent: 'bob', state: 'waits' }] })
  })

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
    await handleOf(bob.holds, 'of bob')
    await ada.fleet.askBack({ key: 'of bob' }, 'not for ada')
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
