import assert from 'node:assert/strict'
import type { Topic } from '../topic.ts'

/** To wait is to be in the list: which lease is notified of what, and when. */
export const waits: Topic = {
  'a key goes to the oldest waiter, in the revision that frees it (I18)': async (scene) => {
    const key = scene.key()
    const line = []
    for (let count = 0; count < 4; count++) line.push(await scene.hold(key))
    const recorders = line.map(({ lease }) => scene.watchLease(lease))
    for (const recorder of recorders) await recorder.next('standing')
    for (let at = 0; at + 1 < line.length; at++) {
      const { lease, token } = line[at]!
      const { revision } = await scene.store.release({ lease, keys: [key], token })
      const held = await recorders[at + 1]!.next('holds')
      assert.deepEqual([held.token, held.revision], [line[at + 1]!.token, revision])
      assert.deepEqual(await scene.holders(key), [line[at + 1]!.token])
    }
  },

  'a claim that loses one of its keys gets no notice that it holds the rest': async (scene) => {
    const [free, taken] = [scene.key('free'), scene.key('taken')]
    await scene.hold(taken)
    const claims = [{ key: free }, { key: taken }]
    const { lease, token, holds } = await scene.grant({ claims })
    assert.equal(holds, false)
    const recorder = scene.watchLease(lease)
    await recorder.next('standing')
    await scene.store.revoke({ target: { key: taken, token } })
    assert.equal((await recorder.next('removed')).key, taken)
    assert.deepEqual(await scene.holders(free), [token])
    await scene.store.revoke({ target: { lease } })
    await recorder.next('gone')
  },

  'a claim that gets one key and loses the other at one moment never held both': async (scene) => {
    const [got, lost] = [scene.key('got'), scene.key('lost')]
    const before = await scene.hold(got)
    await scene.hold(lost)
    const { lease, token } = await scene.grant({ claims: [{ key: got }, { key: lost }] })
    const recorder = scene.watchLease(lease)
    await recorder.next('standing')
    await Promise.all([
      scene.store.release({ lease: before.lease, keys: [got], token: before.token }),
      scene.store.revoke({ target: { key: lost, token } }),
    ])
    // Whichever was first, it is not notified before this that it holds.
    assert.equal((await recorder.next('removed')).key, lost)
    assert.deepEqual(await scene.holders(got), [token])
  },

  'a waiter comes to hold when the holder expires': async (scene) => {
    const key = scene.key()
    const dead = await scene.hold(key, { ttl: scene.ttl })
    const heir = await scene.hold(key)
    const recorder = scene.watchLease(heir.lease)
    await recorder.next('standing')
    await scene.untilGone(dead.lease, scene.ttl)
    assert.equal((await recorder.next('holds')).token, heir.token)
    const { claims, holders } = await scene.read(key)
    assert.deepEqual([holders, claims[0]!.token], [1, heir.token])
    assert.ok(claims[0]!.heldSince! >= claims[0]!.claimedAt)
  },

  'a waiter whose lease has died is skipped (I18)': async (scene) => {
    const key = scene.key()
    const holder = await scene.hold(key)
    const dead = await scene.hold(key, { ttl: scene.ttl })
    const heir = await scene.hold(key)
    const recorder = scene.watchLease(heir.lease)
    await recorder.next('standing')
    await scene.untilGone(dead.lease, scene.ttl)
    await scene.store.release({ lease: holder.lease, keys: [key], token: holder.token })
    assert.equal((await recorder.next('holds')).token, heir.token)
    const { tenures } = await scene.store.read({ history: key })
    assert.deepEqual(
      tenures.map(({ token }) => token),
      [holder.token],
      'one that died in the line never held',
    )
  },

  'holder and first waiter die at one moment: the second waiter gets the key': async (scene) => {
    const key = scene.key()
    const holder = await scene.hold(key, { ttl: scene.ttl })
    const dead = await scene.hold(key, { ttl: scene.ttl })
    const heir = await scene.hold(key)
    const recorder = scene.watchLease(heir.lease)
    await recorder.next('standing')
    await scene.untilGone(dead.lease, scene.ttl)
    await scene.untilGone(holder.lease, 0)
    await recorder.next('holds')
    assert.deepEqual(await scene.holders(key), [heir.token])
  },

  'a waiter is notified when its own lease ends, with the reason': async (scene) => {
    const key = scene.key()
    await scene.hold(key)
    const expiring = await scene.hold(key, { ttl: scene.ttl })
    const revoked = await scene.hold(key)
    const [first, second] = [scene.watchLease(expiring.lease), scene.watchLease(revoked.lease)]
    await first.next('standing')
    await second.next('standing')
    await scene.store.revoke({ target: { lease: revoked.lease }, by: 'admin', why: 'no' })
    const end = (await second.next('gone')).end
    assert.deepEqual([end?.reason, end?.by, end?.why], ['revoked', 'admin', 'no'])
    await scene.untilGone(expiring.lease, scene.ttl)
    assert.equal((await first.next('gone')).end?.reason, 'expired')
    assert.equal((await scene.read(key)).count, 1)
  },

  'one in the middle of the line hears nothing of those who come and go around it': async (
    scene,
  ) => {
    const key = scene.key()
    const holder = await scene.hold(key)
    const before = await scene.hold(key)
    const middle = await scene.hold(key)
    const recorder = scene.watchLease(middle.lease)
    await recorder.next('standing')
    for (let count = 0; count < 5; count++) {
      const { lease, token } = await scene.hold(key)
      await scene.store.release({ lease, keys: [key], token })
    }
    await scene.store.update({ lease: holder.lease, key, token: holder.token, value: 'new' })
    await scene.store.release({ lease: before.lease, keys: [key], token: before.token })
    await scene.store.release({ lease: holder.lease, keys: [key], token: holder.token })
    // Its own turn is its first notice, although everything else happened before.
    assert.equal((await recorder.next('holds')).token, middle.token)
    assert.equal(recorder.notices.length, 2)
  },

  'only a claim that begins to hold is notified: one release wakes one of many waiters': async (
    scene,
  ) => {
    const key = scene.key()
    const holder = await scene.hold(key)
    const line = []
    for (let count = 0; count < 10; count++) line.push(await scene.hold(key))
    const recorders = line.map(({ lease }) => scene.watchLease(lease))
    for (const recorder of recorders) await recorder.next('standing')
    await scene.store.release({ lease: holder.lease, keys: [key], token: holder.token })
    await recorders[0]!.next('holds')
    // Any notices to the others would have been sent before the end of the last one.
    await scene.store.revoke({ target: { lease: line.at(-1)!.lease } })
    await recorders.at(-1)!.next('gone')
    assert.deepEqual(
      recorders.map(({ notices }) => notices.length),
      [2, ...Array(8).fill(1), 2],
    )
  },

  'a waiter can leave the line, and the others close up': async (scene) => {
    const key = scene.key()
    const holder = await scene.hold(key)
    const leaving = await scene.hold(key)
    const next = await scene.hold(key)
    await scene.store.release({ lease: leaving.lease, keys: [key], token: leaving.token })
    assert.deepEqual(await scene.holders(key), [holder.token])
    await scene.store.release({ lease: holder.lease, keys: [key], token: holder.token })
    assert.deepEqual(await scene.holders(key), [next.token])
  },

  'a claim on several keys keeps its place on each while it waits for the others': async (
    scene,
  ) => {
    const [a, b] = [scene.key('a'), scene.key('b')]
    const holder = await scene.hold(a)
    const both = await scene.grant({ claims: [{ key: a }, { key: b }] })
    const later = await scene.hold(b)
    assert.equal(later.holds, false, 'it overtook the older claim on b')
    await scene.store.release({ lease: holder.lease, keys: [a], token: holder.token })
    assert.deepEqual(await scene.holders(a), [both.token])
    await scene.store.release({ lease: both.lease, keys: [a, b], token: both.token })
    assert.deepEqual(await scene.holders(b), [later.token])
  },

  'never do two exclusive claims hold one key, whatever is done at once (I2)': async (scene) => {
    const key = scene.key()
    let holding = 0
    const turn = async () => {
      const { lease } = await scene.grant()
      const recorder = scene.watchLease(lease)
      await recorder.next('standing')
      for (let round = 0; round < 5; round++) {
        const { token, holds } = await scene.claim(lease, key)
        if (!holds) assert.equal((await recorder.next('holds')).token, token)
        assert.equal(++holding, 1, 'two held the key at once')
        assert.deepEqual(await scene.holders(key), [token])
        holding--
        await scene.store.release({ lease, keys: [key], token })
      }
    }
    await Promise.all(Array.from({ length: 8 }, turn))
    assert.equal((await scene.read(key)).count, 0)
  },
}
