import assert from 'node:assert/strict'
import type { LeaseStore } from '../../port/index.ts'
import type { Scene } from './scene.ts'
import type { Topic } from './topic.ts'

/** A call that is sent twice with one request id is one call (I8). */
export const requests: Topic = {
  'a repeated grant finds its own grant': async (scene) => {
    const key = scene.key()
    const once = { holder: 'a', ttl: 600_000, claims: [{ key }], request: scene.key('request') }
    await sameAnswer(scene, (store) => store.grant(once))
    assert.equal((await scene.read(key)).count, 1)
  },

  'a repeated claim gets the same token and takes no second place': async (scene) => {
    const key = scene.key()
    const { lease } = await scene.grant()
    const request = scene.key('request')
    await sameAnswer(scene, (store) => store.claim({ lease, claims: [{ key }], request }))
    assert.equal((await scene.read(key)).count, 1)
  },

  'a busy answer is repeated too, though the key has become free': async (scene) => {
    const key = scene.key()
    const holder = await scene.hold(key)
    const { lease } = await scene.grant()
    const call = { lease, claims: [{ key }], ifFree: true, request: scene.key('request') }
    const first = await scene.store.claim(call)
    assert.equal(first.outcome, 'busy')
    await scene.store.release({ lease: holder.lease, keys: [key], token: holder.token })
    assert.deepEqual(await scene.store.claim(call), first)
    assert.equal((await scene.read(key)).count, 0)
  },

  'a refusal is repeated too, though the call would now succeed': async (scene) => {
    const key = scene.key()
    const { lease } = await scene.grant()
    const token = (await scene.hold(scene.key())).token
    const request = scene.key('request')
    const call = { lease, keys: [key], token, request }
    const first = await scene.refused('claim-not-found', () => scene.store.release(call))
    await scene.claim(lease, key)
    const again = await scene.refused('claim-not-found', () => scene.store.release(call))
    assert.equal(again.message, first.message)
    assert.equal((await scene.read(key)).count, 1)
  },

  'a refusal for an ended lease is repeated with its reason': async (scene) => {
    const { lease } = await scene.grant()
    await scene.store.revoke({ target: { lease }, by: 'admin', why: 'over' })
    const call = { lease, claims: [{ key: scene.key() }], request: scene.key('request') }
    for (let time = 0; time < 2; time++) {
      const error = await scene.refused('lease-ended', () => scene.store.claim(call))
      assert.deepEqual([error.reason, error.by, error.why], ['revoked', 'admin', 'over'])
    }
  },

  'a repeated release succeeds again, and does not free the next grant': async (scene) => {
    const key = scene.key()
    const { lease, token } = await scene.hold(key)
    const call = { lease, keys: [key], token, request: scene.key('request') }
    const first = await scene.store.release(call)
    const next = await scene.claim(lease, key)
    assert.deepEqual(await scene.store.release(call), first)
    assert.deepEqual(await scene.holders(key), [next.token])
  },

  'a repeated update does not bring the old value back': async (scene) => {
    const key = scene.key()
    const { lease, token } = await scene.hold(key)
    const call = { lease, key, token, value: 'one', request: scene.key('request') }
    const first = await scene.store.update(call)
    await scene.store.update({ lease, key, token, value: 'two' })
    assert.deepEqual(await scene.store.update(call), first)
    assert.equal((await scene.read(key)).claims[0]!.value, 'two')
  },

  'a repeated revoke gets the same answer and spares who came after': async (scene) => {
    const key = scene.key()
    await scene.hold(key)
    const call = { target: { key }, request: scene.key('request') }
    const first = await scene.store.revoke(call)
    assert.equal(first.claims, 1)
    const next = await scene.hold(key)
    assert.deepEqual(await scene.store.revoke(call), first)
    assert.deepEqual(await scene.holders(key), [next.token])
  },

  'the same request sent many times at once is carried out once': async (scene) => {
    const key = scene.key()
    const once = { holder: 'a', ttl: 600_000, claims: [{ key }], request: scene.key('request') }
    const answers = await Promise.all(Array.from({ length: 10 }, () => scene.store.grant(once)))
    for (const answer of answers) assert.deepEqual(answer, answers[0])
    assert.equal((await scene.read(key)).count, 1)
  },

  'without a request id, or with another, a call that is sent twice is two calls': async (
    scene,
  ) => {
    const key = scene.key()
    const { lease } = await scene.grant()
    await scene.claim(lease, key)
    await scene.claim(lease, key)
    for (const request of [scene.key('request'), scene.key('request')]) {
      await scene.store.claim({ lease, claims: [{ key }], request })
    }
    assert.equal((await scene.read(key)).count, 4)
  },
}

async function sameAnswer(
  scene: Scene,
  call: (store: LeaseStore) => Promise<unknown>,
): Promise<void> {
  const first = await call(scene.store)
  const before = await scene.everything()
  assert.deepEqual(await call(scene.store), first)
  assert.deepEqual(await scene.everything(), before)
}
