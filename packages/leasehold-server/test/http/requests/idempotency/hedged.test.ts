import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileStore } from 'leasehold/file'
import type { LeaseStore } from 'leasehold/port'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Scene } from '../../scene.ts'
import { cut, once, sendRaw, turns } from './cut-off.ts'

/** Writes that keep the store busy until `stop` is called. */
function load(store: LeaseStore): { stop(): Promise<void> } {
  let stopped = false
  const write = async () => {
    while (!stopped) {
      const granted = await store.grant({ holder: 'load', ttl: 60_000, claims: [{ key: 'load' }] })
      if (granted.outcome === 'granted') await store.revoke({ target: { lease: granted.lease } })
    }
  }
  const writers = Array.from({ length: 8 }, write)
  return {
    stop: async () => {
      stopped = true
      await Promise.all(writers)
    },
  }
}

describe('requests with one Idempotency-Key, under write load on a disk', {
  timeout: 120_000,
}, () => {
  const ROUNDS = 300
  let folder: string
  let store: LeaseStore
  let scene: Scene
  let busy: ReturnType<typeof load>
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'leasehold-idempotency-'))
    store = await fileStore(folder)
    scene = await Scene.open({ store })
    busy = load(store)
  })
  afterAll(async () => {
    await busy.stop()
    await scene.close()
    await rm(folder, { recursive: true, force: true })
  })

  it('leave the lock with its holder when a repeat is cut off at any moment', async () => {
    const round = async (at: number) => {
      const what = `/v1/locks/hedged/${at}?ttl=60s`
      const first = await scene.ask(`POST ${what}`, undefined, once('one'))
      expect(first.status).toBe(201)
      const hedge = await sendRaw(scene, `POST ${what}`, 'one')
      await turns(at % 40)
      await cut(hedge)
      await turns(20)
      const other = await scene.ask(`POST ${what}`)
      expect([other.status, other.body.token]).toEqual([409, first.body.token])
      const again = await scene.ask(`POST ${what}`, undefined, once('one'))
      expect(again).toMatchObject({ status: 201, body: first.body })
    }
    for (let at = 0; at < ROUNDS; at += 10) {
      await Promise.all(Array.from({ length: 10 }, (_, more) => round(at + more)))
    }
  })

  it('give a retry the first answer, whenever the first connection broke', async () => {
    const round = async (at: number) => {
      const what = `/v1/locks/broken/${at}?ttl=60s`
      const first = await sendRaw(scene, `POST ${what}`, 'one')
      await turns(at % 40)
      await cut(first)
      const retried = await scene.ask(`POST ${what}`, undefined, once('one'))
      expect([retried.status, retried.body.detail]).toEqual([201, undefined])
      const again = await scene.ask(`POST ${what}`, undefined, once('one'))
      expect(again.body).toEqual(retried.body)
      expect((await store.read({ key: `broken/${at}` })).count).toBe(1)
    }
    for (let at = 0; at < ROUNDS; at += 10) {
      await Promise.all(Array.from({ length: 10 }, (_, more) => round(at + more)))
    }
  })

  it('never give two callers the key while waiters arrive, leave and repeat', async () => {
    const round = async (at: number) => {
      const key = `queue/${at}`
      const what = `/v1/locks/${key}?ttl=60s`
      const held = await scene.ask(`POST ${what}`)
      const callers = await Promise.all(
        [1, 2, 3].map(() => sendRaw(scene, `POST ${what}&wait=20s`, 'q')),
      )
      const stays = scene.ask(`POST ${what}&wait=20s`, undefined, once('q'))
      const release = scene.ask(`DELETE /v1/locks/${key}?lease=${held.body.lease}`)
      for (const [place, caller] of callers.entries()) {
        await turns((at * 7 + place * 3) % 25)
        await cut(caller)
      }
      expect((await release).status).toBe(200)
      const answer = await stays
      expect([answer.status, answer.body.detail]).toEqual([201, undefined])
      const { claims } = await store.read({ key })
      expect(claims.map(({ token }) => token)).toEqual([answer.body.token])
      expect((await scene.ask(`POST ${what}&wait=20s`, undefined, once('q'))).body).toEqual(
        answer.body,
      )
    }
    for (let at = 0; at < 100; at += 10) {
      await Promise.all(Array.from({ length: 10 }, (_, more) => round(at + more)))
    }
  })
})
