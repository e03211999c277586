import { describe, expect, it } from 'vitest'
import { isLeaseholdError, type SessionEvent } from '../../../src/index.ts'
import { inNewScene, SCENES } from '../scenes/scene.ts'

interface Cart {
  readonly items: readonly string[]
}

describe.each(SCENES)('sessions on $name', ({ make }) => {
  const inScene = inNewScene(make)

  it(
    'belong to no process: any other loads them by id, saves and ends them',
    inScene(async (scene) => {
      const [a, b] = [await scene.open('a'), await scene.open('b')]
      const created = await a.sessions<Cart>().create({ user: 'ada', data: { items: [] } })
      await a.close()
      const loaded = (await b.sessions<Cart>().get(created.id))!
      expect(loaded).toMatchObject({ user: 'ada', data: { items: [] }, ref: created.ref })
      await loaded.save({ items: ['tea'] })
      expect(loaded.data).toEqual({ items: ['tea'] })
      const again = await (await scene.open('c')).sessions<Cart>().get(created.id)
      expect(again?.data).toEqual({ items: ['tea'] })
      await again!.end('logout')
      expect(await b.sessions().get(created.id)).toBeUndefined()
      await again!.end()
    }),
  )

  it(
    'do not show their ids in keys',
    inScene(async (scene) => {
      const a = await scene.open('a')
      const { id, ref } = await a.sessions('web').create({ user: 'ada/1 %', data: {} })
      const { keys } = await scene.store.read({ prefix: '' })
      expect(keys.map(({ key }) => key)).toEqual([
        `session/web/id/${ref}`,
        `session/web/user/ada%2F1%20%25/${ref}`,
      ])
      expect(JSON.stringify(keys)).not.toContain(id)
      expect(id).toHaveLength(22)
    }),
  )

  it(
    'of one user are listed and ended together, and nobody else’s',
    inScene(async (scene) => {
      const [a, b] = [await scene.open('a'), await scene.open('b')]
      const sessions = a.sessions<string>()
      const kept = await sessions.create({ user: 'ada', data: 'phone' })
      await sessions.create({ user: 'ada', data: 'laptop' })
      const other = await sessions.create({ user: 'ada/lovelace', data: 'other' })
      const prefixed = await sessions.create({ user: 'ad', data: 'other' })
      const elsewhere = await a.sessions('admin').create({ user: 'ada', data: 'admin' })
      const listed = await b.sessions<string>().list('ada')
      expect(listed.map((session) => session.data).sort()).toEqual(['laptop', 'phone'])
      expect(listed[0]!.until).toBeGreaterThan(listed[0]!.createdAt)
      expect(await b.sessions().list('ada', { limit: 1 })).toHaveLength(1)
      expect(await b.sessions().endAll('ada', { except: kept.id })).toBe(1)
      expect(await sessions.get(kept.id)).toBeDefined()
      expect(await b.sessions().endAll('ada')).toBe(1)
      expect(await sessions.list('ada')).toEqual([])
      for (const session of [other, prefixed]) expect(await sessions.get(session.id)).toBeDefined()
      expect(await a.sessions('admin').get(elsewhere.id)).toBeDefined()
    }),
  )

  it(
    'end everything held under their lease',
    inScene(async (scene) => {
      if (!scene.store.guarantees.childLeases) return
      const [a, b] = [await scene.open('a'), await scene.open('b')]
      const session = await a.sessions().create({ user: 'ada', data: null })
      const held = await a.lock('editor/page-1', { parent: session.lease })
      await b.sessions().end(session.id)
      expect((await b.tryLock('editor/page-1')).lock?.held).toBe(true)
      await scene.until('its holder notices', () => held.state === 'lost')
      await expect(a.lock('editor/page-2', { parent: session.lease })).rejects.toSatisfy((error) =>
        isLeaseholdError(error, 'lease-ended'),
      )
    }),
  )

  it(
    'live while they are touched and no longer; every process sees the end and its reason',
    inScene(async (scene) => {
      const [a, b] = [await scene.open('a'), await scene.open('b')]
      const events: SessionEvent[] = []
      const watch = b.sessions().watch((event) => events.push(event))
      await watch.ready
      const session = await a.sessions().create({ user: 'ada', data: 1, ttl: '2s' })
      for (let i = 0; i < 4; i++) {
        await scene.pass(800)
        await session.touch()
      }
      expect(await b.sessions().get(session.id)).toBeDefined()
      await scene.pass(2000)
      await scene.until('it ends', async () => !(await a.sessions().get(session.id)))
      expect(await b.sessions().get(session.id)).toBeUndefined()
      const late = await session.touch().catch((error: unknown) => error)
      expect(isLeaseholdError(late, 'lease-ended') && late.reason).toBe('expired')
      const lateSave = await session.save(2).catch((error: unknown) => error)
      expect(isLeaseholdError(lateSave, 'lease-ended') && lateSave.reason).toBe('expired')
      await scene.until('the end is reported', () => events.length === 2)
      expect(events).toMatchObject([
        { type: 'created', ref: session.ref, user: 'ada' },
        { type: 'ended', ref: session.ref, user: 'ada', reason: 'expired' },
      ])
    }),
  )

  it(
    'report who ended them and why, until the watch is closed',
    inScene(async (scene) => {
      const a = await scene.open('a')
      const sessions = a.sessions()
      const events: SessionEvent[] = []
      const watch = sessions.watch((event) => events.push(event))
      await watch.ready
      const { id } = await sessions.create({ data: null })
      await sessions.end(id, 'logout')
      await scene.until('both are reported', () => events.length === 2)
      expect(events[1]).toMatchObject({ type: 'ended', reason: 'ended', by: 'a', why: 'logout' })
      watch.close()
      await sessions.create({ data: null })
      await scene.pass(50)
      expect(events).toHaveLength(2)
    }),
  )

  it(
    'refuse data that is too long or not JSON, and invalid names',
    inScene(async (scene) => {
      const a = await scene.open('a')
      const sessions = a.sessions()
      const long = 'x'.repeat(70_000)
      await expect(sessions.create({ data: long })).rejects.toThrowError(
        /the data of the session cannot be stored: the value has 70\d+ bytes: at most \d+ are allowed/,
      )
      const session = await sessions.create({ data: 1 })
      await expect(session.save(long)).rejects.toThrowError(/at most \d+ are allowed/)
      expect((await sessions.get(session.id))?.data).toBe(1)
      await expect(session.save(1n)).rejects.toThrowError(/cannot be written as JSON/)
      await expect(sessions.create({ data: undefined })).rejects.toThrowError(/JSON cannot hold/)
      await expect(sessions.create({ user: '', data: 1 })).rejects.toThrowError(/user is ""/)
      await expect(sessions.create(5 as never)).rejects.toThrowError(/new session is 5/)
      await expect(sessions.get(5 as never)).rejects.toThrowError(/id is 5/)
      await expect(sessions.list('ada', { limit: 0 })).rejects.toThrowError(/limit is 0/)
      expect(() => a.sessions('a/b')).toThrowError(/name of the sessions is "a\/b"/)
      expect(() => a.sessions('web', { ttl: '2h', max: '1h' })).toThrowError(
        /max 1h is shorter than ttl 2h/,
      )
    }),
  )
})
