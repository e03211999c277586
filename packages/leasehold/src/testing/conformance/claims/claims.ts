import assert from 'node:assert/strict'
import type { Claimed } from '../../../port/index.ts'
import type { Topic } from '../topic.ts'

/** Who holds a key. */
export const claims: Topic = {
  'an exclusive claim on a free key holds at once, with a token': async (scene) => {
    const key = scene.key()
    const { lease } = await scene.grant({ holder: 'alice' })
    const answer = await scene.store.claim({ lease, claims: [{ key, value: 'v' }] })
    assert.ok(answer.outcome === 'claimed' && answer.holds)
    assert.ok(Number.isSafeInteger(answer.token) && answer.token > 0)
    assert.deepEqual(answer.ahead, [])
    const reading = await scene.read(key)
    assert.deepEqual([reading.holders, reading.count], [1, 1])
    const claim = reading.claims[0]!
    assert.deepEqual(
      [claim.key, claim.token, claim.lease, claim.holder, claim.mode, claim.limit, claim.value],
      [key, answer.token, lease, 'alice', 'exclusive', undefined, 'v'],
    )
    assert.equal(claim.heldSince, claim.claimedAt)
  },

  'a grant can carry its first claims in the same step': async (scene) => {
    const key = scene.key()
    const { lease, token, holds } = await scene.hold(key)
    assert.ok(holds && token > 0)
    assert.deepEqual(await scene.holders(key), [token])
    assert.equal((await scene.store.read({ lease })).lease?.claims, 1)
  },

  'a second exclusive claim waits, and its answer names the claims before it': async (scene) => {
    const key = scene.key()
    const first = await scene.hold(key, { holder: 'alice' })
    const second = await scene.hold(key, { holder: 'bob' })
    assert.equal(second.holds, false)
    assert.equal(second.ahead.length, 1)
    const { key: name, count, first: head } = second.ahead[0]!
    assert.deepEqual([name, count, head.token, head.holder], [key, 1, first.token, 'alice'])
    const third = await scene.hold(key)
    assert.equal(third.ahead[0]!.count, 2)
    assert.equal(third.ahead[0]!.first.token, first.token)
    const { claims, holders, count: all } = await scene.read(key)
    assert.deepEqual([holders, all], [1, 3])
    assert.equal(claims[1]!.heldSince, undefined, 'one that waits has held since never')
  },

  'tokens on a key only go up, however it is handed on (I1)': async (scene) => {
    const key = scene.key()
    let last = 0
    for (let round = 0; round < 12; round++) {
      const { lease, token } = await scene.hold(key)
      assert.ok(token > last, `token ${token} came after ${last}`)
      last = token
      if (round % 3 === 0) await scene.store.release({ lease, keys: [key], token })
      else if (round % 3 === 1) await scene.store.revoke({ target: { lease } })
      else await scene.store.revoke({ target: { key, token } })
    }
  },

  'the order of a key is the order of tokens': async (scene) => {
    const key = scene.key()
    const tokens: number[] = []
    for (let count = 0; count < 5; count++) tokens.push((await scene.hold(key)).token)
    const { claims } = await scene.read(key)
    assert.deepEqual(
      claims.map(({ token }) => token),
      tokens,
    )
    assert.deepEqual(
      tokens,
      [...tokens].sort((one, other) => one - other),
    )
  },

  'shared claims hold together': async (scene) => {
    const key = scene.key()
    const tokens: number[] = []
    for (let count = 0; count < 3; count++) {
      const { token, holds } = await scene.grant({ claims: [{ key, mode: 'shared' }] })
      assert.ok(holds)
      tokens.push(token)
    }
    assert.deepEqual(await scene.holders(key), tokens)
  },

  'an exclusive claim waits for all shared ones, and those behind it wait for it': async (
    scene,
  ) => {
    const key = scene.key()
    const one = await scene.grant({ claims: [{ key, mode: 'shared' }] })
    const two = await scene.grant({ claims: [{ key, mode: 'shared' }] })
    const writer = await scene.hold(key)
    const three = await scene.grant({ claims: [{ key, mode: 'shared' }] })
    assert.equal(writer.holds || three.holds, false)
    await scene.store.release({ lease: one.lease, keys: [key], token: one.token })
    assert.deepEqual(await scene.holders(key), [two.token])
    await scene.store.release({ lease: two.lease, keys: [key], token: two.token })
    assert.deepEqual(await scene.holders(key), [writer.token])
    await scene.store.release({ lease: writer.lease, keys: [key], token: writer.token })
    assert.deepEqual(await scene.holders(key), [three.token])
  },

  'when an exclusive claim goes, all shared ones behind it come to hold together': async (
    scene,
  ) => {
    const key = scene.key()
    const writer = await scene.hold(key)
    const readers = []
    for (let count = 0; count < 3; count++) {
      readers.push((await scene.grant({ claims: [{ key, mode: 'shared' }] })).token)
    }
    const last = await scene.hold(key)
    await scene.store.release({ lease: writer.lease, keys: [key], token: writer.token })
    assert.deepEqual(await scene.holders(key), readers)
    assert.equal((await scene.read(key)).claims.at(-1)?.token, last.token)
  },

  'never more than the limit hold, and each has a token of its own (I17)': async (scene) => {
    const key = scene.key()
    const permits = []
    for (let count = 0; count < 5; count++) {
      permits.push(await scene.grant({ claims: [{ key, mode: 'shared', limit: 2 }] }))
    }
    assert.deepEqual(
      permits.map(({ holds }) => holds),
      [true, true, false, false, false],
    )
    assert.equal(new Set(permits.map(({ token }) => token)).size, 5)
    await scene.store.revoke({ target: { lease: permits[0]!.lease } })
    assert.deepEqual(await scene.holders(key), [permits[1]!.token, permits[2]!.token])
    await scene.store.revoke({ target: { lease: permits[3]!.lease } })
    assert.deepEqual(await scene.holders(key), [permits[1]!.token, permits[2]!.token])
  },

  'each claim is judged by its own limit, and the first that may not hold stops those behind':
    async (scene) => {
      const key = scene.key()
      const shared = (limit?: number) => scene.grant({ claims: [{ key, mode: 'shared', limit }] })
      const one = await shared(1)
      const two = await shared(2)
      const tight = await shared(2)
      const wide = await shared(9)
      assert.deepEqual(await scene.holders(key), [one.token, two.token])
      assert.equal(wide.holds, false, 'it overtook the one before it')
      await scene.store.revoke({ target: { lease: one.lease } })
      assert.deepEqual(await scene.holders(key), [two.token, tight.token, wide.token])
    },

  'several keys are claimed in one step, with one token': async (scene) => {
    const [a, b, c] = [scene.key('a'), scene.key('b'), scene.key('c')]
    const recorder = scene.watchPrefix(scene.prefix)
    const { token, holds, revision } = await scene.grant({
      claims: [{ key: a }, { key: b, mode: 'shared', limit: 3 }, { key: c, value: 'x' }],
    })
    assert.ok(holds)
    for (const key of [a, b, c]) assert.deepEqual(await scene.holders(key), [token])
    await recorder.eventsUntil((event) => event.key === c)
    const { events } = recorder
    assert.deepEqual(new Set(events.map((event) => event.revision)), new Set([revision]))
    assert.deepEqual(
      events.filter(({ type }) => type === 'claimed').map(({ key }) => key),
      [a, b, c],
    )
  },

  'a claim on several keys holds when it holds every one of them': async (scene) => {
    const [a, b] = [scene.key('a'), scene.key('b')]
    const onA = await scene.hold(a)
    const onB = await scene.hold(b)
    const both = await scene.grant({ claims: [{ key: a }, { key: b }] })
    assert.deepEqual(both.ahead.map(({ key }) => key).sort(), [a, b])
    const recorder = scene.watchLease(both.lease)
    const standing = await recorder.next('standing')
    assert.deepEqual(
      standing.claims.map(({ holds }) => holds),
      [false, false],
    )
    await scene.store.release({ lease: onA.lease, keys: [a], token: onA.token })
    assert.deepEqual(await scene.holders(a), [both.token])
    const { revision } = await scene.store.release({
      lease: onB.lease,
      keys: [b],
      token: onB.token,
    })
    const held = await recorder.next('holds')
    assert.deepEqual([held.token, held.revision], [both.token, revision], 'notified too early')
  },

  'claiming the same keys in opposite orders at once does not deadlock': async (scene) => {
    const [a, b] = [scene.key('a'), scene.key('b')]
    const leases = await Promise.all([scene.grant(), scene.grant(), scene.grant(), scene.grant()])
    const recorders = leases.map(({ lease }) => scene.watchLease(lease))
    await Promise.all(recorders.map((recorder) => recorder.next('standing')))
    const claimed = await Promise.all(
      leases.map(({ lease }, at) =>
        at % 2 === 0 ? scene.claim(lease, a, b) : scene.claim(lease, b, a),
      ),
    )
    const order = leases
      .map(({ lease }, at) => ({ lease, token: claimed[at]!.token, recorder: recorders[at]! }))
      .sort((one, other) => one.token - other.token)
    for (const [at, { lease, token, recorder }] of order.entries()) {
      if (at > 0) assert.equal((await recorder.next('holds')).token, token)
      assert.deepEqual([await scene.holders(a), await scene.holders(b)], [[token], [token]])
      await scene.store.release({ lease, keys: [b, a], token })
    }
  },

  'one lease may claim one key twice, with a token and a place for each': async (scene) => {
    const key = scene.key()
    const { lease, token } = await scene.hold(key)
    const again = await scene.claim(lease, key)
    assert.ok(!again.holds && again.token > token)
    await scene.store.release({ lease, keys: [key], token })
    assert.deepEqual(await scene.holders(key), [again.token])
  },

  'ifFree adds what holds at once, and otherwise changes nothing and says who holds': async (
    scene,
  ) => {
    const [a, b] = [scene.key('a'), scene.key('b')]
    const holder = await scene.hold(a, { holder: 'alice' })
    const { lease } = await scene.grant()
    const before = await scene.everything([lease, holder.lease])
    const busy = await scene.claimIfFree(lease, b, a)
    assert.equal(busy.outcome, 'busy')
    assert.deepEqual(
      busy.ahead.map(({ key, count, first }) => [key, count, first.token, first.holder]),
      [[a, 1, holder.token, 'alice']],
    )
    assert.deepEqual(await scene.everything([lease, holder.lease]), before)
    const free = await scene.claimIfFree(lease, b)
    assert.ok(free.outcome === 'claimed' && free.holds)
  },

  'ifFree counts those who wait as well as those who hold': async (scene) => {
    const key = scene.key()
    await scene.grant({ claims: [{ key, mode: 'shared' }] })
    const { lease } = await scene.grant()
    const shared = { key, mode: 'shared' } as const
    assert.equal((await scene.claimIfFree(lease, { ...shared, limit: 1 })).outcome, 'busy')
    assert.equal((await scene.claimIfFree(lease, { ...shared, limit: 2 })).outcome, 'claimed')
    await scene.hold(key)
    assert.equal((await scene.claimIfFree(lease, shared)).outcome, 'busy', 'it jumped the queue')
  },

  'a claim that replaces a token is a compare-and-set on the value': async (scene) => {
    const key = scene.key()
    const { lease, token } = await scene.grant({ claims: [{ key, value: 'one' }] })
    const watch = scene.watchPrefix(key)
    await watch.next('watching')
    const replace = (value: string) =>
      scene.store.claim({ lease, claims: [{ key, value }], replaces: token })
    const both = await Promise.allSettled([replace('two'), replace('three')])
    const done = both.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
    const refused = both.flatMap((each) => (each.status === 'rejected' ? [each.reason.code] : []))
    assert.deepEqual(refused, ['claim-not-found'], 'both replaced the same token')
    const [winner] = done as [Claimed]
    assert.ok(winner.holds && winner.token > token && winner.token === winner.revision)
    const { claims, holders } = await scene.read(key)
    const value = both[0]!.status === 'fulfilled' ? 'two' : 'three'
    assert.deepEqual(
      [holders, claims.map((claim) => [claim.token, claim.value])],
      [1, [[winner.token, value]]],
    )
    const events = await watch.eventsUntil(({ type }) => type === 'held')
    assert.deepEqual(
      events.map((event) => [event.type, event.token, event.revision]),
      [
        ['removed', token, winner.revision],
        ['claimed', winner.token, winner.revision],
        ['held', winner.token, winner.revision],
      ],
    )
  },

  'a claim that replaces another goes to the end of the queue': async (scene) => {
    const [key, other] = [scene.key(), scene.key()]
    const { lease, token } = await scene.hold(key)
    const waiter = await scene.hold(key)
    const before = await scene.everything([lease, waiter.lease])
    const claims = [{ key: other }, { key }]
    await scene.refused('claim-not-found', () =>
      scene.store.claim({ lease, claims, replaces: token }),
    )
    assert.deepEqual(await scene.everything([lease, waiter.lease]), before)
    const again = await scene.store.claim({ lease, claims: [{ key }], replaces: token })
    assert.ok(again.outcome === 'claimed' && !again.holds)
    assert.equal(again.ahead[0]?.first.token, waiter.token)
    assert.deepEqual(await scene.holders(key), [waiter.token])
  },

  'a grant with ifFree that finds the key taken creates no lease': async (scene) => {
    const key = scene.key()
    const { token } = await scene.hold(key)
    const before = await scene.everything()
    const busy = await scene.store.grant({
      holder: 'bob',
      ttl: 600_000,
      claims: [{ key }],
      ifFree: true,
    })
    assert.equal(busy.outcome, 'busy')
    assert.equal(busy.ahead[0]?.first.token, token)
    assert.ok(!('lease' in busy))
    assert.deepEqual(await scene.everything(), before)
  },

  'a release needs the lease, the key and the token, all current (I7)': async (scene) => {
    const [key, other] = [scene.key(), scene.key()]
    const first = await scene.hold(key)
    const second = await scene.hold(key)
    const before = await scene.everything([first.lease, second.lease])
    const wrong = [
      { lease: second.lease, keys: [key], token: first.token },
      { lease: first.lease, keys: [key], token: second.token },
      { lease: first.lease, keys: [other], token: first.token },
      { lease: first.lease, keys: [key, other], token: first.token },
    ]
    for (const request of wrong) {
      await scene.refused('claim-not-found', () => scene.store.release(request))
      assert.deepEqual(await scene.everything([first.lease, second.lease]), before)
    }
  },

  "an old holder's release never frees a newer grant (I7, ABA)": async (scene) => {
    const key = scene.key()
    const { lease, token } = await scene.hold(key)
    await scene.store.release({ lease, keys: [key], token })
    const again = await scene.claim(lease, key)
    await scene.refused('claim-not-found', () => scene.store.release({ lease, keys: [key], token }))
    assert.deepEqual(await scene.holders(key), [again.token])
  },

  'a release of several keys is one step; of some of them leaves the others': async (scene) => {
    const [a, b, c] = [scene.key('a'), scene.key('b'), scene.key('c')]
    const { lease, token } = await scene.grant({
      claims: [{ key: a }, { key: b }, { key: c }],
    })
    await scene.store.release({ lease, keys: [a, c], token })
    assert.equal((await scene.read(a)).count + (await scene.read(c)).count, 0)
    assert.deepEqual(await scene.holders(b), [token])
    assert.equal((await scene.store.read({ lease })).lease?.claims, 1)
  },

  'an update changes the value under its token, and neither token nor place': async (scene) => {
    const key = scene.key()
    const { lease, token } = await scene.grant({ claims: [{ key, value: 'one' }] })
    const waiter = await scene.hold(key)
    await scene.store.update({ lease, key, token, value: 'twö 😀' })
    assert.equal((await scene.read(key)).claims[0]!.value, 'twö 😀')
    await scene.store.update({ lease: waiter.lease, key, token: waiter.token, value: '' })
    assert.equal((await scene.read(key)).claims[1]!.value, '')
    await scene.store.update({ lease, key, token, value: undefined })
    assert.equal((await scene.read(key)).claims[0]!.value, undefined)
    assert.deepEqual(await scene.holders(key), [token])
    await scene.store.release({ lease, keys: [key], token })
    await scene.refused('claim-not-found', () =>
      scene.store.update({ lease, key, token, value: 'late' }),
    )
    await scene.refused('claim-not-found', () =>
      scene.store.update({ lease, key, token: waiter.token, value: 'not mine' }),
    )
  },
}
