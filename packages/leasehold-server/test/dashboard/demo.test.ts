import { memoryStore } from 'leasehold/memory'
import { LeaseholdError, type LeaseStore, systemClock, systemRandom } from 'leasehold/port'
import { pino } from 'pino'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Demo } from '../../demo/index.ts'
import { openCodingAgents } from '../../src/dashboard/demo-agents.ts'
import { changedStore } from '../setup/changed-store.ts'

const log = pino({ level: 'silent' })

describe('the demo', () => {
  let store: LeaseStore

  beforeEach(() => {
    store = memoryStore()
  })

  afterEach(() => store.close())

  const made = (on: LeaseStore = store) =>
    new Demo({
      ...{ store: on, clock: systemClock, random: systemRandom, log },
      openCodingAgent: openCodingAgents(systemClock, systemRandom),
    })

  const keys = async () => (await store.read({ prefix: '' })).keys.map(({ key }) => key)

  it('is not started again by a request that waited for its end while the server stops', async () => {
    const demo = made()
    await demo.start()
    const ending = demo.end()
    const started = demo.start().catch(() => {})
    await demo.stop()
    await Promise.all([ending, started])
    expect(demo.state).toBe('off')
    expect(await keys()).toEqual([])
  })

  it('is not started by a request while the server stops', async () => {
    const demo = made()
    await demo.stop()
    await expect(demo.start()).rejects.toMatchObject({ code: 'closed' })
    expect(await keys()).toEqual([])
  })

  it('removes a lease without claims, which a killed agent may have left', async () => {
    const demo = made()
    await store.grant({ holder: 'demo:ada', ttl: 600_000 })
    await store.grant({ holder: 'ada', ttl: 600_000 })
    await demo.start()
    await demo.end()
    const { leases } = await store.read({ leases: true })
    expect(leases.map(({ holder }) => holder)).toEqual(['ada'])
  })

  it('is off if it could not be started, and can be started later', async () => {
    let isFull = true
    const full = changedStore(store, {
      grant: (request) => {
        const isNode = request.claims?.some(({ key }) => key.startsWith('services/demo-')) ?? false
        if (!isFull || !isNode) return store.grant(request)
        return Promise.reject(new LeaseholdError('storage-full', 'there is no space'))
      },
    })
    const demo = made(full)
    await expect(demo.start()).rejects.toMatchObject({ code: 'storage-full' })
    expect(demo.state).toBe('off')
    expect(await keys()).toEqual([])
    isFull = false
    await demo.start()
    expect(demo.state).toBe('running')
    await demo.end()
    expect(await keys()).toEqual([])
  })
})
