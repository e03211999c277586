import { LeaseholdError, type Observer } from 'leasehold/port'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { FaultyStore } from '../../../../leasehold/test/client/faulty-store.ts'
import { entryAt, openConsul, put } from './open-consul.ts'

/** A gateway whose connection to its store the test interrupts. */
async function openOnLink() {
  const { store, clock, gateway: other, start } = await openConsul()
  const link = new FaultyStore(store, clock)
  const gateway = await start(link)
  await other.close()
  return { store, clock, gateway, link, start, url: `http://127.0.0.1:${gateway.port}/v1` }
}

describe('the Consul API on a store that fails', () => {
  let scene: Awaited<ReturnType<typeof openOnLink>>

  beforeEach(async () => {
    scene = await openOnLink()
  })
  afterEach(() => scene.gateway.close())

  const create = async (body: object = {}, url = scene.url): Promise<string> =>
    (JSON.parse(await put(url, 'session/create', JSON.stringify(body))) as { ID: string }).ID

  /** While `act` runs, the gateway opens its watches again and again, and they report nothing. */
  const whileBlind = async (act: () => Promise<unknown>) => {
    const { clock, link } = scene
    const silent: Observer[] = []
    const watch = vi.spyOn(link, 'watch').mockImplementation((_target, observer) => {
      silent.push(observer)
      return { close: () => {} }
    })
    link.interrupt()
    await clock.advance(1000)
    await act()
    watch.mockRestore()
    const error = new LeaseholdError('unknown-outcome', 'the connection broke')
    for (const observer of silent) observer({ type: 'interrupted', error })
    await clock.advance(1000)
  }

  it('unlocks the keys of sessions that ended while its watch was interrupted', async () => {
    const { url } = scene
    const id = await create({ TTL: '10s', LockDelay: '0s' })
    await put(url, `kv/leader?acquire=${id}`)
    const held = (await entryAt(url, 'leader'))!
    expect(held.Session).toBe(id)
    await whileBlind(() => put(url, `session/destroy/${id}`))
    const changed = fetch(`${url}/kv/leader?index=${held.ModifyIndex}`)
    await expect.poll(async () => (await entryAt(url, 'leader'))!.Session).toBeUndefined()
    expect(Number((await changed).headers.get('x-consul-index'))).toBeGreaterThan(held.ModifyIndex)
  })

  it('unlocks a key at the next attempt if the store does not answer at first', async () => {
    const { clock, link, url } = scene
    const id = await create({ LockDelay: '0s' })
    await put(url, `kv/leader?acquire=${id}`)
    let failures = 0
    link.fault = (call) => {
      if (call !== 'claim') return undefined
      failures++
      return { error: new Error('not now') }
    }
    await put(url, `session/destroy/${id}`)
    await expect.poll(() => failures).toBeGreaterThan(0)
    link.fault = () => undefined
    expect((await entryAt(url, 'leader'))!.Session).toBe(id)
    await clock.advance(2000)
    await expect.poll(async () => (await entryAt(url, 'leader'))!.Session).toBeUndefined()
  })

  it('turns a ttl check critical that expired while its watch was interrupted', async () => {
    const { clock, url } = scene
    const Check = { TTL: '10s', Status: 'passing' }
    await put(url, 'agent/service/register', JSON.stringify({ Name: 'web', Check }))
    const checks = async () => (await (await fetch(`${url}/health/checks/web`)).json()) as object[]
    expect(await checks()).toMatchObject([{ Status: 'passing' }])
    // The lease of the ttl expires.
    await whileBlind(() => clock.advance(20_000))
    await expect.poll(checks).toMatchObject([{ Status: 'critical' }])
  })

  it('keeps a lock that its session takes again while the key is being deleted', async () => {
    const { clock, link, url } = scene
    const id = await create({ TTL: '10s', LockDelay: '0s' })
    await put(url, `kv/leader?acquire=${id}`)
    let releases = 0
    link.fault = (call) => (call === 'release' && ++releases > 1 ? { there: 500 } : undefined)
    const deleting = fetch(`${url}/kv/leader`, { method: 'DELETE' })
    await expect.poll(() => entryAt(url, 'leader')).toBeUndefined()
    expect(await put(url, `kv/leader?acquire=${id}`)).toBe('true')
    await clock.advance(1000)
    await deleting
    link.fault = () => undefined
    expect((await entryAt(url, 'leader'))!.Session).toBe(id)
    await put(url, `session/destroy/${id}`)
    await expect.poll(async () => (await entryAt(url, 'leader'))!.Session).toBeUndefined()
  })

  it('gives no lock to a session that ends while its entry is written', async () => {
    const { link, url } = scene
    const id = await create({ LockDelay: '0s' })
    link.fault = (call) => (call === 'grant' ? { there: 500 } : undefined)
    const acquiring = put(url, `kv/leader?acquire=${id}`)
    await expect.poll(() => link.calls.at(-1)).toMatch(/grant|read/)
    await expect.poll(() => link.count('grant')).toBeGreaterThan(1)
    await put(url, `session/destroy/${id}`)
    await scene.clock.advance(500)
    await scene.clock.advance(500)
    expect(await acquiring).toBe(`invalid session "${id}"`)
    await expect.poll(async () => (await entryAt(url, 'leader'))?.Session).toBeUndefined()
    link.fault = () => undefined
    const other = await create()
    expect(await put(url, `kv/leader?acquire=${other}`)).toBe('true')
  })

  it('unlocks a key that another server locked for a session that had ended', async () => {
    const { start, store, url } = scene
    const id = await create({ LockDelay: '0s' })
    await put(url, `session/destroy/${id}`)
    const header = JSON.stringify({ f: 0, l: 1, s: id, d: 0 })
    const claims = [{ key: 'consul/kv/leader', value: `${header}\nvalue` }]
    await store.grant({ holder: 'another server', ttl: Infinity, claims })
    await expect.poll(async () => (await entryAt(url, 'leader'))!.Session).toBeUndefined()
    const second = await start(store)
    await second.close()
  })
})
