import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { entryAt, openConsul, put } from './open-consul.ts'

describe('sessions of the Consul API', () => {
  let scene: Awaited<ReturnType<typeof openConsul>>

  beforeEach(async () => {
    scene = await openConsul()
  })
  afterEach(() => scene.gateway.close())

  const create = async (body: object = {}): Promise<string> =>
    (JSON.parse(await put(scene.url, 'session/create', JSON.stringify(body))) as { ID: string }).ID
  const acquire = (id: string, value = '') => put(scene.url, `kv/leader?acquire=${id}`, value)
  const leader = () => entryAt(scene.url, 'leader')

  it('creates, lists, renews and destroys them with npm consul', async () => {
    const { session } = scene.client
    const { ID } = await session.create({ name: 'one', ttl: '10s', lockdelay: '1s' })
    expect(ID).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
    const info = { ID, Name: 'one', TTL: '10s', LockDelay: 1e9, Behavior: 'release' }
    expect(await session.get(ID)).toMatchObject(info)
    expect(await session.list()).toHaveLength(1)
    expect(await session.renew(ID)).toMatchObject([{ ID }])
    await session.destroy(ID)
    expect(await session.get(ID)).toBeUndefined()
    await expect(session.renew(ID)).rejects.toThrow(/not found/i)
  })

  it('refuses what Consul refuses, in its words', async () => {
    expect(await put(scene.url, 'session/create', '{"TTL":"5s"}')).toBe(
      "Invalid Session TTL '5000000000', must be between [10s=24h0m0s]",
    )
    expect(await put(scene.url, 'session/create', '{"Behavior":"x"}')).toMatch(/Invalid Behavior/)
    expect(await acquire('nobody')).toBe('invalid session "nobody"')
  })

  it('gives a key to one session, again to the same one, and to another after release', async () => {
    const [one, two] = [await create({ Name: 'one' }), await create({ Name: 'two' })]
    expect(await acquire(one, 'a')).toBe('true')
    expect(await acquire(two, 'b')).toBe('false')
    expect(await leader()).toMatchObject({ Session: one, LockIndex: 1, Value: btoa('a') })
    expect(await acquire(one, 'c')).toBe('true')
    expect(await leader()).toMatchObject({ Session: one, LockIndex: 1, Value: btoa('c') })
    expect(await put(scene.url, `kv/leader?release=${two}`)).toBe('false')
    expect(await put(scene.url, `kv/leader?release=${one}`, 'd')).toBe('true')
    const free = await leader()
    expect([free?.Session, free?.Value]).toEqual([undefined, btoa('d')])
    expect(await acquire(two, 'e')).toBe('true')
    expect(await leader()).toMatchObject({ Session: two, LockIndex: 2 })
  })

  it('gives a contended key to one of many sessions', async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, () => create()))
    const answers = await Promise.all(ids.map((id) => acquire(id, id)))
    const winner = ids[answers.indexOf('true')]!
    expect(answers.filter((answer) => answer === 'true')).toHaveLength(1)
    expect(await leader()).toMatchObject({ Session: winner, Value: btoa(winner) })
  })

  it('expires between one and two ttl, unlocks the key, and honours the lock-delay', async () => {
    const { clock, url } = scene
    const [one, two] = [await create({ ttl: '10s' }), await create()]
    await acquire(one, 'a')
    const held = (await leader())!
    await clock.advance(10_000)
    expect(await leader()).toMatchObject({ Session: one })
    const changed = fetch(`${url}/kv/leader?index=${held.ModifyIndex}&wait=300s`)
    await clock.advance(10_100)
    await changed
    const free = (await leader())!
    expect([free.Session, free.Value, free.ModifyIndex > held.ModifyIndex]).toEqual([
      undefined,
      btoa('a'),
      true,
    ])
    expect(await acquire(two)).toBe('false')
    await clock.advance(15_000)
    expect(await acquire(two)).toBe('true')
  })

  it('lives on while it is renewed', async () => {
    const { clock, url } = scene
    const id = await create({ TTL: '10s' })
    await acquire(id)
    for (let at = 0; at < 5; at++) {
      await clock.advance(15_000)
      await put(url, `session/renew/${id}`)
    }
    expect(await leader()).toMatchObject({ Session: id })
  })

  it('deletes its keys if that is its behaviour; a destroyed one has its lock-delay, too', async () => {
    const { clock, url } = scene
    const [one, two] = [
      await create({ behavior: 'delete', lockdelay: '2s' }),
      await create({ lockdelay: 0 }),
    ]
    await acquire(one)
    await put(url, `session/destroy/${one}`)
    await expect.poll(leader).toBeUndefined()
    expect(await acquire(two)).toBe('false')
    await clock.advance(2000)
    expect(await acquire(two)).toBe('true')
    await put(url, `session/destroy/${two}`)
    await expect.poll(async () => (await leader())?.Session).toBeUndefined()
    expect(await acquire(await create())).toBe('true')
  })

  it('unlocks after a restart what sessions held that ended meanwhile, with their lock-delay', async () => {
    const { clock, start } = scene
    const [one, two] = [
      await create({ ttl: '10s', lockdelay: '5s' }),
      await create({ ttl: '10s', lockdelay: 0, behavior: 'delete' }),
    ]
    await acquire(one)
    await put(scene.url, `kv/deleted?acquire=${two}`)
    await scene.gateway.close()
    await clock.advance(20_100)
    scene.gateway = await start()
    scene.url = `http://127.0.0.1:${scene.gateway.port}/v1`
    expect((await leader())!.Session).toBeUndefined()
    expect(await entryAt(scene.url, 'deleted')).toBeUndefined()
    const three = await create()
    expect(await acquire(three)).toBe('false')
    await clock.advance(5000)
    expect(await acquire(three)).toBe('true')
  })

  it('locks more keys than a lease can have claims, and unlocks them all', async () => {
    await scene.gateway.close()
    scene = await openConsul({ limits: { claimsPerLease: 4 } })
    const id = await create({ LockDelay: '0s' })
    const keys = Array.from({ length: 200 }, (_, at) => `many/${at}`)
    for (const key of keys) expect(await put(scene.url, `kv/${key}?acquire=${id}`)).toBe('true')
    await put(scene.url, `session/destroy/${id}`)
    const locked = async () => {
      const all = (await (await fetch(`${scene.url}/kv/many?recurse`)).json()) as object[]
      return all.filter((each) => 'Session' in each).length
    }
    await expect.poll(locked).toBe(0)
  })
})
