import assert from 'node:assert/strict'
import type { Topic } from '../topic.ts'

/** What a lease is, and how long it lives. */
export const leases: Topic = {
  'a granted lease can be read with all that it was granted with': async (scene) => {
    const labels = { zone: 'b', empty: '' }
    const { lease, token, holds, ahead, revision } = await scene.grant({ holder: 'ålice', labels })
    assert.deepEqual([token, holds, ahead], [0, true, []], 'a grant without claims')
    const reading = await scene.store.read({ lease })
    assert.ok(reading.revision >= revision)
    assert.equal(reading.end, undefined)
    assert.deepEqual(reading.claims, [])
    const read = reading.lease!
    assert.deepEqual(
      [read.id, read.holder, read.ttl, read.grace, read.claims, read.children, read.parent],
      [lease, 'ålice', 600_000, 0, 0, 0, undefined],
    )
    assert.deepEqual(read.labels, labels)
    assert.equal(read.endOfLife, Infinity)
    assert.equal(read.renewedAt, read.grantedAt)
  },

  'every grant gets an id of its own and a revision above all before it': async (scene) => {
    const ids = new Set<string>()
    let last = 0
    for (let count = 0; count < 20; count++) {
      const { lease, revision } = await scene.grant()
      assert.ok(!ids.has(lease), `the id ${lease} was given twice`)
      assert.ok(revision > last, `revision ${revision} came after ${last}`)
      ids.add(lease)
      last = revision
    }
  },

  'the id of an ended lease is never given to another': async (scene) => {
    const ended = new Set<string>()
    for (let count = 0; count < 20; count++) {
      const { lease } = await scene.grant()
      assert.ok(!ended.has(lease))
      await scene.store.revoke({ target: { lease } })
      ended.add(lease)
      assert.equal(await scene.lives(lease), false)
    }
  },

  'a lease is not ended before its ttl and grace have passed (I10)': async (scene) => {
    const key = scene.key()
    const grace = scene.steps(scene.ttl / 2)
    const started = performance.now()
    const { lease } = await scene.hold(key, { ttl: scene.ttl, grace })
    if (scene.advance) {
      await scene.advance(scene.ttl + grace - 1)
      assert.ok(await scene.lives(lease), 'it was gone a millisecond too early')
      assert.equal((await scene.read(key)).holders, 1)
      return
    }
    await scene.untilGone(lease, scene.ttl + grace)
    const lived = performance.now() - started
    // Two clocks measure this, and each may round.
    assert.ok(lived * 1.01 + 2 >= scene.ttl + grace, `gone after ${lived} ms`)
  },

  'a lease that nobody renews is gone when its time is over, no later than promised (I11)': async (
    scene,
  ) => {
    const key = scene.key()
    const grace = scene.steps(scene.ttl / 2)
    const { lease } = await scene.hold(key, { ttl: scene.ttl, grace })
    await scene.untilGone(lease, scene.ttl + grace)
    const reading = await scene.store.read({ lease })
    assert.equal(reading.lease, undefined)
    assert.equal(reading.end?.reason, 'expired')
    assert.equal((await scene.read(key)).count, 0)
  },

  'a key can be claimed as soon as its dead holder has been judged by the clock (I2, I11)': async (
    scene,
  ) => {
    const key = scene.key()
    const dead = await scene.hold(key, { ttl: scene.ttl })
    const heir = await scene.grant()
    assert.equal((await scene.claimIfFree(heir.lease, key)).outcome, 'busy')
    await scene.untilGone(dead.lease, scene.ttl)
    const answer = await scene.claimIfFree(heir.lease, key)
    assert.equal(answer.outcome, 'claimed')
    assert.ok(answer.outcome === 'claimed' && answer.token > dead.token)
  },

  'a renewal gives the full ttl again, counted from the renewal': async (scene) => {
    const kept = await scene.grant({ ttl: scene.ttl })
    const left = await scene.grant({ ttl: scene.ttl })
    await scene.pass(scene.ttl / 2)
    assert.deepEqual(await scene.store.renew([kept.lease]), { lost: [], capped: [] })
    await scene.untilGone(left.lease, scene.ttl / 2)
    assert.ok(await scene.lives(kept.lease), 'the renewed lease ended with the one not renewed')
    await scene.untilGone(kept.lease, scene.ttl)
  },

  'renewing often does not add up: the lease still ends one ttl after the last': async (scene) => {
    const { lease } = await scene.grant({ ttl: scene.ttl })
    for (let count = 0; count < 10; count++) await scene.store.renew([lease])
    const { until, renewedAt } = (await scene.store.read({ lease })).lease!
    assert.ok(Math.abs(until - renewedAt - scene.ttl) < 1e-3, `${until - renewedAt} ms are left`)
    await scene.untilGone(lease, scene.ttl)
  },

  'no renewal shortens a lease (I9)': async (scene) => {
    const { lease } = await scene.grant({ ttl: scene.ttl })
    let before = (await scene.store.read({ lease })).lease!.until
    for (let count = 0; count < 5; count++) {
      await scene.store.renew([lease])
      const { until } = (await scene.store.read({ lease })).lease!
      assert.ok(until >= before, `the deadline went back from ${before} to ${until}`)
      before = until
    }
  },

  'a renewal changes neither token nor revision nor place (I9)': async (scene) => {
    const key = scene.key()
    const first = await scene.hold(key)
    const second = await scene.hold(key)
    const before = await scene.read(key)
    await scene.store.renew([second.lease, first.lease, first.lease])
    const after = await scene.read(key)
    assert.equal(after.holders, 1)
    assert.deepEqual(
      after.claims.map(({ token, lease, heldSince }) => [token, lease, heldSince]),
      before.claims.map(({ token, lease, heldSince }) => [token, lease, heldSince]),
    )
  },

  'a renewal in its grace still saves a lease and all its claims': async (scene) => {
    const key = scene.key()
    const grace = scene.steps(4 * scene.ttl)
    const { lease, token } = await scene.hold(key, { ttl: scene.ttl, grace })
    await scene.pass(scene.ttl + scene.ttl / 2)
    assert.deepEqual(await scene.store.renew([lease]), { lost: [], capped: [] })
    assert.deepEqual(await scene.holders(key), [token])
  },

  'a batch renews the living and names the lost, each with its end': async (scene) => {
    const living = await scene.grant()
    const revoked = await scene.grant()
    await scene.store.revoke({ target: { lease: revoked.lease }, by: 'admin', why: 'test' })
    const { lost, capped } = await scene.store.renew(['no-such-lease', living.lease, revoked.lease])
    assert.deepEqual(capped, [])
    assert.deepEqual(
      lost.map(({ lease, end }) => [lease, end?.reason, end?.by, end?.why]),
      [
        ['no-such-lease', undefined, undefined, undefined],
        [revoked.lease, 'revoked', 'admin', 'test'],
      ],
    )
  },

  'renewing nothing is no error': async (scene) => {
    assert.deepEqual(await scene.store.renew([]), { lost: [], capped: [] })
  },

  'no renewal brings an ended lease back': async (scene) => {
    const key = scene.key()
    const { lease } = await scene.hold(key)
    await scene.store.revoke({ target: { lease } })
    assert.equal((await scene.store.renew([lease])).lost[0]?.lease, lease)
    assert.equal(await scene.lives(lease), false)
    assert.equal((await scene.read(key)).count, 0)
  },

  'an infinite ttl never ends by itself': async (scene) => {
    const { lease } = await scene.grant({ ttl: Infinity })
    await scene.pass(scene.ttl)
    const read = (await scene.store.read({ lease })).lease!
    assert.equal(read.until, Infinity)
    assert.deepEqual(await scene.store.renew([lease]), { lost: [], capped: [] })
  },

  'a lease ends at its maximum life, however often it is renewed': async (scene) => {
    const { lease } = await scene.grant({ ttl: scene.ttl, maxLife: scene.ttl })
    const other = await scene.grant({ ttl: scene.ttl })
    await scene.pass(scene.ttl / 2)
    const { lost, capped } = await scene.store.renew([lease, other.lease])
    assert.deepEqual(lost, [])
    assert.deepEqual(
      capped.map((each) => [each.lease, each.end]),
      [[lease, undefined]],
      'only the one whose life ends is capped, and by nobody',
    )
    assert.ok(capped[0]!.remaining >= 0 && capped[0]!.remaining <= scene.ttl / 2 + 1)
    await scene.untilGone(lease, scene.ttl / 2)
    assert.ok(await scene.lives(other.lease))
    const { end } = await scene.store.read({ lease })
    assert.equal(end?.reason, 'expired')
  },
}
