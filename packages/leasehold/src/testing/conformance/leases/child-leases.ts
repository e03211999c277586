import assert from 'node:assert/strict'
import type { Scene } from '../scene.ts'
import type { Topic } from '../topic.ts'

/** Child leases. A store without them must say so, and refuse them. */
const cases: Topic = {
  'a lease under another knows its parent, and the parent counts it': async (scene) => {
    const parent = await scene.grant()
    const child = await scene.grant({ parent: parent.lease })
    assert.equal((await scene.store.read({ lease: child.lease })).lease?.parent, parent.lease)
    assert.equal((await scene.store.read({ lease: parent.lease })).lease?.children, 1)
    await scene.store.revoke({ target: { lease: child.lease } })
    assert.equal((await scene.store.read({ lease: parent.lease })).lease?.children, 0)
  },

  'all leases under a revoked one end with it, with all their claims, in one revision (I15)':
    async (scene) => {
      const [a, b, c] = [scene.key('a'), scene.key('b'), scene.key('c')]
      const recorder = scene.watchPrefix(scene.prefix)
      const parent = await scene.hold(a)
      const child = await scene.hold(b, { parent: parent.lease, ttl: Infinity })
      const grandchild = await scene.hold(c, { parent: child.lease })
      const answer = await scene.store.revoke({ target: { lease: parent.lease }, why: 'over' })
      assert.deepEqual([answer.leases, answer.claims, answer.more], [3, 3, false])
      for (const { lease } of [parent, child, grandchild]) {
        const reading = await scene.store.read({ lease })
        assert.equal(reading.lease, undefined, 'a lease outlived its parent')
        assert.equal(reading.end?.reason, 'revoked')
      }
      await recorder.eventsUntil((event) => event.type === 'removed')
      const removed = recorder.events.filter((event) => event.type === 'removed')
      assert.deepEqual(removed.map((event) => event.key).sort(), [a, b, c])
      assert.deepEqual(new Set(removed.map((event) => event.revision)), new Set([answer.revision]))
    },

  'a child ends with its expired parent, whatever its own ttl, in one revision (I15)': async (
    scene,
  ) => {
    const [a, b] = [scene.key('a'), scene.key('b')]
    const recorder = scene.watchPrefix(scene.prefix)
    const parent = await scene.hold(a, { ttl: scene.ttl })
    const child = await scene.hold(b, { parent: parent.lease, ttl: Infinity })
    await scene.untilGone(parent.lease, scene.ttl)
    assert.equal(await scene.lives(child.lease), false)
    await recorder.eventsUntil((event) => event.type === 'removed')
    const removed = recorder.events.filter((event) => event.type === 'removed')
    assert.equal(removed.length, 2)
    assert.equal(removed[0]!.revision, removed[1]!.revision)
    assert.deepEqual(
      removed.map((event) => event.end?.reason),
      ['expired', 'expired'],
    )
  },

  'a child that ends leaves its parent alone': async (scene) => {
    const parent = await scene.grant()
    const child = await scene.grant({ parent: parent.lease, ttl: scene.ttl })
    await scene.untilGone(child.lease, scene.ttl)
    assert.ok(await scene.lives(parent.lease))
  },

  'renewing a parent does not renew its children': async (scene) => {
    // Twice the ttl, so that the parent of a process that stalls outlives the child.
    const parent = await scene.grant({ ttl: 2 * scene.ttl })
    const child = await scene.grant({ parent: parent.lease, ttl: scene.ttl })
    await scene.pass(scene.ttl / 2)
    await scene.store.renew([parent.lease])
    await scene.untilGone(child.lease, scene.ttl / 2)
    assert.ok(await scene.lives(parent.lease))
  },

  'revoking by parent ends all under it and not the parent': async (scene) => {
    const key = scene.key()
    const parent = await scene.hold(key)
    const child = await scene.grant({ parent: parent.lease })
    const grandchild = await scene.grant({ parent: child.lease })
    const other = await scene.grant({ parent: parent.lease })
    const answer = await scene.store.revoke({ target: { parent: parent.lease }, by: 'admin' })
    assert.deepEqual([answer.leases, answer.claims, answer.more], [3, 0, false])
    assert.ok(await scene.lives(parent.lease))
    for (const { lease } of [child, grandchild, other]) {
      assert.equal((await scene.store.read({ lease })).end?.by, 'admin')
    }
    assert.deepEqual(await scene.holders(key), [parent.token])
  },

  'a dying family does not hand a key to one of its own': async (scene) => {
    const key = scene.key()
    const parent = await scene.hold(key)
    const child = await scene.hold(key, { parent: parent.lease })
    const heir = await scene.hold(key)
    const recorder = scene.watchLease(child.lease)
    await recorder.next('standing')
    await scene.store.revoke({ target: { lease: parent.lease } })
    await recorder.next('gone')
    assert.deepEqual(await scene.holders(key), [heir.token])
    const { tenures } = await scene.store.read({ history: key })
    assert.deepEqual(
      tenures.map((tenure) => tenure.token),
      [parent.token],
    )
  },

  'a lease under one that is not there is refused': async (scene) => {
    await scene.refused('lease-not-found', () => scene.grant({ parent: 'no-such-lease' }))
    const { lease } = await scene.grant()
    await scene.store.revoke({ target: { lease } })
    await scene.refused('lease-ended', () => scene.grant({ parent: lease }))
  },
}

export const childLeases: Topic = Object.fromEntries(
  Object.entries(cases).map(([name, run]) => [name, withChildren(run)]),
)

function withChildren(run: (scene: Scene) => Promise<void>) {
  return async (scene: Scene) => {
    if (scene.store.guarantees.childLeases) return run(scene)
    const { lease } = await scene.grant()
    await scene.refused('unsupported', () => scene.grant({ parent: lease }))
  }
}
