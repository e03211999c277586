import assert from 'node:assert/strict'
import type { Topic } from './topic.ts'

/** What a closed store does. */
export const close: Topic = {
  'a closed store refuses every call with `closed`': async (scene) => {
    const key = scene.key()
    const { lease, token } = await scene.hold(key)
    const { store } = scene
    await store.close()
    const calls = [
      () => store.grant({ holder: 'a', ttl: 600_000 }),
      () => store.renew([lease]),
      () => store.revoke({ target: { lease } }),
      () => store.claim({ lease, claims: [{ key }] }),
      () => store.release({ lease, keys: [key], token }),
      () => store.update({ lease, key, token, value: 'x' }),
      () => store.read({ key }),
      async () => store.watch({ prefix: '' }, () => {}),
    ]
    for (const call of calls) {
      const error = await scene.refused('closed', call)
      assert.match(error.message, /closed/)
    }
  },

  'closing ends every watch with `interrupted`, and says no more': async (scene) => {
    const { lease } = await scene.hold(scene.key())
    const [prefix, own] = [scene.watchPrefix(scene.prefix), scene.watchLease(lease)]
    await prefix.next('watching')
    await own.next('standing')
    await scene.store.close()
    assert.equal((await prefix.next('interrupted')).error.code, 'closed')
    assert.equal((await own.next('interrupted')).error.code, 'closed')
  },

  'closing twice, or twice at once, does nothing more': async (scene) => {
    await Promise.all([scene.store.close(), scene.store.close()])
    await scene.store.close()
  },
}
