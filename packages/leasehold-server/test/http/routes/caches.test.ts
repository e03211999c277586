import { Leasehold } from 'leasehold'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Scene } from '../scene.ts'

let scene: Scene
let leasehold: Leasehold
beforeEach(async () => {
  scene = await Scene.open()
  leasehold = await Leasehold.open(scene.server.url, { holder: 'program' })
})
afterEach(async () => {
  await leasehold.close()
  await scene.close()
})

const ENTRY = '/v1/caches/prices/eur%2Fusd'
const ask = async (what: string, body?: unknown) =>
  (await scene.ask(what.replace(' ', ` ${ENTRY}`), body)).body

describe('a cache over HTTP', () => {
  it('stores, shows and removes a value, which programs see too', async () => {
    expect(await ask('GET ')).toEqual({ found: false })
    const value = { price: 1.5, since: 0.25 }
    expect(await ask('PUT ?ttl=1m', { value })).toEqual({ stored: true })
    // What was stored is not changed, whatever the names of its fields.
    expect(await ask('GET ')).toEqual({ found: true, value })
    expect(await leasehold.cache('prices').peek('eur/usd')).toEqual(value)
    expect(await ask('DELETE ')).toEqual({ removed: true })
    expect(await ask('GET ')).toEqual({ found: false })
  })

  it('has one loader; the others wait for its value', async () => {
    const { found, lease, token, remaining } = await ask('POST ?loadTtl=20s')
    expect([found, remaining]).toEqual([false, 20_000])
    expect(await ask('POST ')).toMatchObject({ code: 'timeout', status: 409 })
    const program = leasehold.cache('prices').get('eur/usd', () => 'loaded by the program')
    const other = ask('POST ?wait=20s')
    await scene.ask(`PUT /v1/leases/${lease}`)
    expect(await ask(`PUT ?lease=${lease}&token=${token}`, { value: 7 })).toEqual({ stored: true })
    expect(await other).toEqual({ found: true, value: 7 })
    expect(await program).toBe(7)
    expect((await scene.store.read({ lease: lease.split('~')[0] })).lease).toBeUndefined()
  })

  it('refuses the value of a loader that was too late', async () => {
    const { lease, token } = await ask('POST ')
    await ask('PUT ', { value: 'newer' })
    const late = await ask(`PUT ?lease=${lease}&token=${token}`, { value: 'older' })
    expect(late).toEqual({ stored: false })
    expect(await ask('GET ')).toEqual({ found: true, value: 'newer' })
  })

  it('replaces a loader that ended its lease', async () => {
    const { lease } = await ask('POST ')
    const next = ask('POST ?wait=20s')
    await scene.ask(`DELETE /v1/leases/${lease}`)
    expect(await next).toMatchObject({ found: false })
  })
})

describe('a lock over HTTP', () => {
  it('is read: free, held, and waited for, with times as integers', async () => {
    const read = async () => (await scene.ask('GET /v1/locks/jobs/1')).body
    expect(await read()).toMatchObject({ key: 'jobs/1', held: false, holders: [], waiting: 0 })
    const { lease } = (await scene.ask('POST /v1/locks/jobs/1?holder=a')).body
    const waiting = scene.ask('POST /v1/locks/jobs/1?holder=b&wait=20s')
    await scene.claims('jobs/1', 2)
    const { held, holders, waiting: count } = await read()
    expect([held, count, holders.length]).toEqual([true, 1, 1])
    expect(holders[0]).toMatchObject({ holder: 'a' })
    const { claimedAt, heldSince, until } = holders[0]
    expect([claimedAt, heldSince, until].map(Number.isInteger)).toEqual([true, true, true])
    await scene.ask(`DELETE /v1/locks/jobs/1?lease=${lease}`)
    expect((await waiting).status).toBe(201)
  })
})
