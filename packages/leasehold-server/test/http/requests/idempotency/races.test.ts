import { memoryStore } from 'leasehold/memory'
import type { LeaseStore } from 'leasehold/port'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Scene, until } from '../../scene.ts'
import { cut, once, sendRaw, turns } from './cut-off.ts'

/** The same request at two servers at a time, in many orders of events. */
describe('a repeat at another server', () => {
  let store: LeaseStore
  let one: Scene
  let two: Scene
  beforeAll(async () => {
    store = memoryStore()
    one = await Scene.open({ store })
    two = await Scene.open({ store })
  })
  afterAll(async () => {
    await Promise.all([one.server.close(), two.server.close()])
    await store.close()
  })

  it('keeps waiting when the callers of the first server leave, and only it holds', async () => {
    for (let at = 0; at < 40; at++) {
      const key = `both/${at}`
      const what = `POST /v1/locks/${key}?ttl=60s&wait=20s`
      const held = await one.ask(`POST /v1/locks/${key}`)
      const gone = await sendRaw(one, what, 'b')
      await one.claims(key, 2)
      const stays = two.ask(what, undefined, once('b'))
      await until(() => two.server.httpStats.waiting > 0)
      const released = one.ask(`DELETE /v1/locks/${key}?lease=${held.body.lease}`)
      await turns(at % 20)
      await cut(gone)
      await released
      const answer = await stays
      expect([answer.status, answer.body.detail]).toEqual([201, undefined])
      const { claims } = await store.read({ key })
      expect(claims.map(({ token }) => token)).toEqual([answer.body.token])
    }
  })

  it('never loses a grant of one server while the wait was over at the other', async () => {
    for (let at = 0; at < 40; at++) {
      const key = `late/${at}`
      const what = `POST /v1/locks/${key}?ttl=60s`
      const held = await one.ask(what)
      const short = one.ask(`${what}&wait=30ms`, undefined, once('t'))
      await one.claims(key, 2)
      const long = two.ask(`${what}&wait=20s`, undefined, once('t'))
      const freed = new Promise((resolve) => setTimeout(resolve, 26 + (at % 8)))
      const revoked = freed.then(() => store.revoke({ target: { lease: held.body.lease } }))
      const answers = await Promise.all([short, long])
      await revoked
      const answer = answers.filter(({ status }) => status === 201).map(({ body }) => body.token)
      const { claims } = await store.read({ key })
      expect(claims.map(({ token }) => token)).toEqual(answer.slice(0, 1))
      expect(new Set(answer).size).toBeLessThan(2)
      for (const { status } of answers) expect([201, 409]).toContain(status)
    }
  })
})
