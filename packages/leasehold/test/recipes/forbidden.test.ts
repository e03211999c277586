import { describe, expect, it } from 'vitest'
import { Leasehold, LeaseholdError, type LeaseStore } from '../../src/index.ts'
import { SeededRandom, testStore } from '../../src/testing/index.ts'
import { changedStore } from '../setup/changed-store.ts'

/** A store that denies reading prefixes and watching until that is allowed. */
async function scene(verb: 'read' | 'watch') {
  const { store, clock } = testStore()
  const rights = { missing: true }
  const check = (isConcerned: boolean) => {
    if (isConcerned && rights.missing) throw new LeaseholdError('forbidden', `no right to ${verb}`)
  }
  const guarded: LeaseStore = changedStore(store, {
    read: (async (query) => {
      check(verb === 'read' && 'prefix' in query)
      return store.read(query)
    }) as LeaseStore['read'],
    watch: (target, observer) => {
      check(verb === 'watch' && 'prefix' in target)
      return store.watch(target, observer)
    },
  })
  const leasehold = await Leasehold.open(guarded, { clock, random: new SeededRandom(3) })
  return { store, clock, rights, leasehold }
}

const FORBIDDEN = { code: 'forbidden' }

describe.each(['read', 'watch'] as const)('without the right to %s', (verb) => {
  it('a pool fails without the right to read, and works once it is granted', async () => {
    const { clock, rights, leasehold } = await scene(verb)
    const pool = leasehold.pool('gpu', { resources: [{ name: 'gpu-0' }] })
    await expect(pool.status()).rejects.toMatchObject(FORBIDDEN)
    await expect(pool.take({ tenant: 'a', wait: '1h' })).rejects.toMatchObject(FORBIDDEN)
    await expect(pool.tryTake({ tenant: 'a' })).rejects.toMatchObject(FORBIDDEN)
    rights.missing = false
    expect((await pool.status()).resources).toHaveLength(1)
    const permit = await pool.take({ tenant: 'a', wait: '1h' })
    await permit.release()
    await clock.advance(100)
    await leasehold.close()
  })

  it('discovery and observation fail instead of waiting', async () => {
    const { leasehold } = await scene(verb)
    await expect(leasehold.registry.watch('api').ready).rejects.toMatchObject(FORBIDDEN)
    const observation = leasehold.election('e').observe()
    await expect(observation.ready).rejects.toMatchObject(FORBIDDEN)
    const loop = async () => {
      for await (const _ of leasehold.election('e').observe());
    }
    await expect(loop()).rejects.toMatchObject(FORBIDDEN)
    await leasehold.close()
  })

  it('a checker reports it, lets the next take over, and checks once the right is granted', async () => {
    const { store, clock, rights, leasehold } = await scene(verb)
    const reported: (string | undefined)[] = []
    leasehold.on('recipe-event', ({ recipe, event, detail }) => {
      if (recipe === 'registry' && event === 'idle') reported.push(detail)
    })
    let probes = 0
    const probe = async () => {
      probes++
      return { status: 'passing', note: '' } as const
    }
    const checker = leasehold.registry.checker({ probe, brake: false })
    const check = { tcp: true, every: '1s' } as const
    await leasehold.registry.register('api', { address: 'api:8080', check })
    await clock.advance(5000)
    expect(reported[0]).toContain(`no right to ${verb}`)
    expect(probes).toBe(0)
    rights.missing = false
    await clock.advance(30_000)
    expect(probes).toBeGreaterThan(0)
    expect(await store.read({ key: checker.key })).toMatchObject({ count: 1 })
    await checker.close()
    await leasehold.close()
  })
})

it('a live discovery continues when its right is withdrawn and granted again', async () => {
  const { clock, rights, leasehold, store } = await scene('read')
  rights.missing = false
  const discovery = leasehold.registry.watch('api')
  await discovery.ready
  rights.missing = true
  await clock.advance(10_000)
  rights.missing = false
  await leasehold.registry.register('api', { id: 'one', address: 'api:8080' })
  await clock.advance(60_000)
  expect(discovery.instances.map(({ id }) => id)).toEqual(['one'])
  await leasehold.close()
  await store.close()
})
