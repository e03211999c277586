import assert from 'node:assert/strict'
import type { Topic } from '../topic.ts'

/** Revocations: at once, or after a period. */
export const revocations: Topic = {
  'revoking a lease ends it and its claims at once, and says by whom and why': async (scene) => {
    const [a, b] = [scene.key('a'), scene.key('b')]
    const { lease, token } = await scene.grant({ claims: [{ key: a }, { key: b }] })
    const recorder = scene.watchPrefix(scene.prefix)
    await recorder.next('watching')
    const answer = await scene.store.revoke({ target: { lease }, by: 'admin', why: 'upgrade' })
    assert.deepEqual([answer.leases, answer.claims, answer.more], [1, 2, false])
    const end = { reason: 'revoked', by: 'admin', why: 'upgrade' }
    assert.deepEqual(defined((await scene.store.read({ lease })).end), end)
    await recorder.eventsUntil((event) => event.type === 'removed')
    assert.deepEqual(
      recorder.events.map((event) => [event.token, event.revision, defined(event.end)]),
      [
        [token, answer.revision, end],
        [token, answer.revision, end],
      ],
    )
    const error = await scene.refused('lease-ended', () => scene.claim(lease, a))
    assert.deepEqual([error.reason, error.by, error.why], ['revoked', 'admin', 'upgrade'])
  },

  'revoking twice is refused the second time': async (scene) => {
    const { lease } = await scene.grant()
    await scene.store.revoke({ target: { lease } })
    const error = await scene.refused('lease-ended', () =>
      scene.store.revoke({ target: { lease } }),
    )
    assert.equal(error.reason, 'revoked')
    await scene.refused('lease-not-found', () =>
      scene.store.revoke({ target: { lease: 'no-such-lease' } }),
    )
    await scene.refused('lease-not-found', () =>
      scene.store.revoke({ target: { parent: 'no-such-lease' } }),
    )
  },

  'revoking by prefix takes the claims and leaves the leases': async (scene) => {
    const [a, b] = [scene.key('in/a'), scene.key('in/b')]
    const out = scene.key('out')
    const holder = await scene.grant({ claims: [{ key: a }, { key: out }] })
    const waiter = await scene.grant({ claims: [{ key: a }, { key: b }] })
    const answer = await scene.store.revoke({ target: { prefix: `${scene.prefix}in/` } })
    assert.deepEqual([answer.leases, answer.claims, answer.more], [0, 3, false])
    assert.equal((await scene.read(a)).count, 0)
    assert.equal((await scene.read(b)).count, 0)
    assert.deepEqual(await scene.holders(out), [holder.token])
    assert.ok((await scene.lives(holder.lease)) && (await scene.lives(waiter.lease)))
  },

  'revoking a key takes all its claims, and nobody among them holds in between': async (scene) => {
    const key = scene.key()
    const first = await scene.hold(key)
    const second = await scene.hold(key)
    const recorder = scene.watchLease(second.lease)
    await recorder.next('standing')
    const answer = await scene.store.revoke({ target: { key }, why: 'clear' })
    assert.equal(answer.claims, 2)
    const removed = await recorder.next('removed')
    assert.deepEqual([removed.key, removed.token, removed.end.why], [key, second.token, 'clear'])
    assert.equal((await scene.read(key)).count, 0)
    const { tenures } = await scene.store.read({ history: key })
    assert.deepEqual(
      tenures.map((tenure) => tenure.token),
      [first.token],
    )
  },

  'revoking a key and token takes that claim only, and the next comes to hold': async (scene) => {
    const key = scene.key()
    const first = await scene.hold(key)
    const second = await scene.hold(key)
    const answer = await scene.store.revoke({ target: { key, token: first.token } })
    assert.deepEqual([answer.leases, answer.claims], [0, 1])
    assert.deepEqual(await scene.holders(key), [second.token])
    assert.ok(await scene.lives(first.lease))
    const again = await scene.store.revoke({ target: { key, token: first.token } })
    assert.deepEqual([again.leases, again.claims, again.more], [0, 0, false])
    assert.deepEqual(await scene.holders(key), [second.token], 'an old token took a newer claim')
  },

  'a break with a period lets the lease live that long, and no renewal passes it': async (
    scene,
  ) => {
    const key = scene.key()
    const { lease, token } = await scene.hold(key, { ttl: scene.ttl })
    const heir = await scene.hold(key)
    const recorder = scene.watchLease(lease)
    await recorder.next('standing')
    const after = scene.steps(scene.ttl)
    const answer = await scene.store.revoke({ target: { lease }, after, by: 'admin', why: 'move' })
    assert.deepEqual([answer.leases, answer.claims], [1, 0])
    const notice = await recorder.next('capped')
    assert.deepEqual(defined(notice.end), { reason: 'broken', by: 'admin', why: 'move' })
    assert.ok(notice.remaining > 0 && notice.remaining <= after)
    assert.deepEqual(await scene.holders(key), [token], 'it took effect at once')
    await scene.pass(after / 2)
    const { capped } = await scene.store.renew([lease])
    assert.equal(capped[0]?.end?.by, 'admin')
    await scene.untilGone(lease, after / 2)
    const gone = await recorder.next('gone')
    assert.deepEqual(defined(gone.end), { reason: 'broken', by: 'admin', why: 'move' })
    assert.deepEqual(await scene.holders(key), [heir.token])
  },

  'a break never lengthens a life': async (scene) => {
    const { lease } = await scene.grant({ ttl: scene.ttl, maxLife: scene.ttl })
    const { endOfLife } = (await scene.store.read({ lease })).lease!
    const answer = await scene.store.revoke({ target: { lease }, after: 10 * scene.ttl })
    assert.equal(answer.leases, 0)
    assert.equal((await scene.store.read({ lease })).lease!.endOfLife, endOfLife)
  },

  'a broken lease that nobody renews still ends by its own ttl first': async (scene) => {
    const { lease } = await scene.grant({ ttl: scene.ttl })
    await scene.store.revoke({ target: { lease }, after: 10 * scene.ttl })
    await scene.untilGone(lease, scene.ttl)
    assert.equal((await scene.store.read({ lease })).end?.reason, 'expired')
  },
}

/** An end without undefined fields. */
function defined(end: object | undefined): unknown {
  return JSON.parse(JSON.stringify(end ?? null))
}
