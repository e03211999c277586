import assert from 'node:assert/strict'
import type { Event } from '../../../port/index.ts'
import type { Scene } from '../scene.ts'
import type { Topic } from '../topic.ts'
import { checkHeld, isHeld } from './held.ts'

/** Enough to make most stores forget, and not so much that a slow one takes forever. */
const EVENTS_MOST = 100_000

/** What watches report. */
export const watches: Topic = {
  'a watch of a prefix reports each change of a claim, with its state then': async (scene) => {
    const key = scene.key()
    const recorder = scene.watchPrefix(scene.prefix)
    await recorder.next('watching')
    const shared = { key, mode: 'shared', limit: 4, value: 'one' } as const
    const { lease, token } = await scene.grant({ holder: 'alice', claims: [shared] })
    await scene.store.update({ lease, key, token, value: 'two' })
    await scene.store.release({ lease, keys: [key], token })
    const events = await recorder.eventsUntil((event) => event.type === 'removed')
    assert.deepEqual(
      events.map(({ type, value, end }) => [type, value, end?.reason]),
      [
        ['claimed', 'one', undefined],
        ['held', 'one', undefined],
        ['updated', 'two', undefined],
        ['removed', 'two', 'released'],
      ],
    )
    for (const event of events) {
      assert.deepEqual(
        [event.key, event.token, event.lease, event.holder, event.mode, event.limit],
        [key, token, lease, 'alice', 'shared', 4],
      )
    }
  },

  'a claim that was updated while it waited is reported with its latest value': async (scene) => {
    const key = scene.key()
    const first = await scene.hold(key)
    const recorder = scene.watchPrefix(scene.prefix)
    await recorder.next('watching')
    const { lease, token } = await scene.grant({ claims: [{ key, value: 'old' }] })
    const own = scene.watchLease(lease)
    await own.next('standing')
    await scene.store.update({ lease, key, token, value: 'new' })
    await scene.store.release({ lease: first.lease, keys: [key], token: first.token })
    await own.next('holds')
    await scene.store.release({ lease, keys: [key], token })
    const isLast = (event: Event) => event.type === 'removed' && event.token === token
    const { value } = (await recorder.eventsUntil(isLast)).at(-1)!
    assert.equal(value, 'new')
    const { tenures } = await scene.store.read({ history: key })
    assert.deepEqual(
      tenures.map((tenure) => tenure.token),
      [token, first.token],
    )
    assert.ok(tenures[0]!.heldSince >= tenures[1]!.endedAt)
  },

  'a watch of a prefix reports nothing about other keys': async (scene) => {
    const recorder = scene.watchPrefix(`${scene.prefix}in/`)
    await recorder.next('watching')
    await scene.hold(scene.key('out/a'))
    await scene.hold(scene.key('in'))
    const last = scene.key('in/z')
    await scene.hold(last)
    const events = await recorder.eventsUntil((event) => event.key === last)
    assert.equal(events.length, 1)
  },

  'events come in order, each once, without gaps, to everyone alike (I16)': async (scene) => {
    const recorders = [scene.watchPrefix(scene.prefix), scene.watchPrefix(scene.prefix)]
    const last = await commotion(scene)
    for (const recorder of recorders) {
      const events = await recorder.eventsUntil(isHeld(last))
      checkOrder(events)
      checkHeld(events)
      await checkAgainstReading(scene, events)
    }
    assert.deepEqual(recorders[0]!.events, recorders[1]!.events)
  },

  'a watch resumes after any revision that is kept, and hears all that came after (I16)': async (
    scene,
  ) => {
    const before = await scene.revision()
    const recorder = scene.watchPrefix(scene.prefix)
    const last = await commotion(scene)
    const all = await recorder.eventsUntil(isHeld(last))
    const revisions = [before, ...new Set(all.map(({ revision }) => revision))]
    for (const from of revisions.slice(0, -1)) {
      const again = scene.watchPrefix(scene.prefix, from)
      assert.equal((await again.next('watching')).revision, from)
      const events = await again.eventsUntil(isHeld(last))
      assert.deepEqual(
        events,
        all.filter(({ revision }) => revision > from),
      )
      again.close()
    }
  },

  'a watch from now on hears nothing of before': async (scene) => {
    await commotion(scene)
    const revision = await scene.revision()
    const recorder = scene.watchPrefix(scene.prefix)
    assert.ok((await recorder.next('watching')).revision >= revision)
    const key = scene.key()
    await scene.hold(key)
    assert.equal((await recorder.eventsUntil((event) => event.key === key)).length, 1)
  },

  'reading and then watching from the revision read misses nothing': async (scene) => {
    const [a, b] = [scene.key('a'), scene.key('b')]
    await scene.hold(a)
    const { revision } = await scene.store.read({ prefix: scene.prefix })
    await scene.hold(b)
    const recorder = scene.watchPrefix(scene.prefix, revision)
    const events = await recorder.eventsUntil((event) => event.key === b)
    assert.equal(events.length, 1)
  },

  'all events of one revision come in one notice (I16)': async (scene) => {
    const keys = Array.from({ length: 8 }, () => scene.key())
    const recorder = scene.watchPrefix(scene.prefix)
    await recorder.next('watching')
    const { lease } = await scene.grant({ claims: keys.map((key) => ({ key })) })
    await scene.store.revoke({ target: { lease } })
    await recorder.eventsUntil((event) => event.type === 'removed')
    const seen = new Set<number>()
    for (const notice of recorder.notices) {
      if (notice.type !== 'events') continue
      for (const revision of new Set(notice.events.map((event) => event.revision))) {
        assert.ok(!seen.has(revision), `revision ${revision} was split between two notices`)
        seen.add(revision)
      }
      assert.equal(notice.revision, notice.events.at(-1)!.revision)
    }
    assert.equal(recorder.events.length, 24)
  },

  'an old revision is resumed without a gap, or is said to be compacted (I16)': async (scene) => {
    const key = scene.key()
    await scene.hold(key)
    const from = await scene.revision()
    const made = await manyEvents(scene)
    const recorder = scene.watchPrefix(scene.prefix, from)
    const first = await recorder.nextAny()
    if (first.type === 'compacted') {
      assert.ok(first.oldest > from, `oldest is ${first.oldest} though ${from} was not kept`)
      assert.ok(made > scene.store.guarantees.eventsKept, 'fewer are kept than promised')
      const again = scene.watchPrefix(scene.prefix, first.oldest)
      assert.equal((await again.next('watching')).revision, first.oldest)
      await scene.hold(key)
      // After `compacted` the watch is over: only the new one reports what happens later.
      await again.eventsUntil((event) => event.key === key)
      assert.equal(recorder.notices.length, 1)
      return
    }
    assert.equal(first.type, 'watching')
    await scene.hold(key)
    assert.equal((await recorder.eventsUntil((event) => event.key === key)).length, made + 1)
  },

  'a closed watch hears nothing more, and closing twice does nothing': async (scene) => {
    const key = scene.key()
    const closed = scene.watchPrefix(scene.prefix)
    const open = scene.watchPrefix(scene.prefix)
    const { lease, token } = await scene.hold(key)
    const own = scene.watchLease(lease)
    await own.next('standing')
    await closed.eventsUntil((event) => event.key === key)
    const count = closed.notices.length
    closed.close()
    closed.close()
    own.close()
    await scene.store.release({ lease, keys: [key], token })
    await scene.store.revoke({ target: { lease } })
    await open.eventsUntil((event) => event.type === 'removed')
    assert.equal(closed.notices.length, count)
    assert.equal(own.notices.length, 1)
  },

  "a lease's watch tells first how all its claims stand": async (scene) => {
    const [a, b, c] = [scene.key('a'), scene.key('b'), scene.key('c')]
    await scene.hold(b)
    const { lease, token } = await scene.hold(a)
    const two = await scene.claim(lease, b, c)
    const { claims, revision } = await scene.watchLease(lease).next('standing')
    assert.ok(revision >= two.revision)
    assert.deepEqual(
      claims.map(({ key, token, holds }) => [key, token, holds]).sort(byKey),
      [
        [a, token, true],
        [b, two.token, false],
        [c, two.token, false],
      ],
      'a claim holds where it holds all the keys that it was made on',
    )
  },

  "a lease's watch tells of a claim that is taken by force, and not of its own releases": async (
    scene,
  ) => {
    const [a, b] = [scene.key('a'), scene.key('b')]
    const { lease, token } = await scene.grant({ claims: [{ key: a }, { key: b }] })
    const recorder = scene.watchLease(lease)
    await recorder.next('standing')
    await scene.store.release({ lease, keys: [a], token })
    const { revision } = await scene.store.revoke({ target: { key: b, token }, by: 'x', why: 'y' })
    const { end, ...removed } = await recorder.next('removed')
    assert.deepEqual(removed, { type: 'removed', revision, key: b, token })
    assert.deepEqual([end.reason, end.by, end.why], ['revoked', 'x', 'y'])
  },

  "a lease's watch ends with the lease": async (scene) => {
    const { lease } = await scene.hold(scene.key())
    const recorder = scene.watchLease(lease)
    await recorder.next('standing')
    await scene.store.revoke({ target: { lease }, why: 'over' })
    assert.equal((await recorder.next('gone')).end?.why, 'over')
    const late = scene.watchLease(lease)
    assert.equal((await late.next('gone')).end?.why, 'over')
    const unknown = scene.watchLease('no-such-lease')
    assert.equal((await unknown.next('gone')).end, undefined)
    assert.deepEqual([recorder.notices.length, late.notices.length], [2, 1])
  },
}

/** Changes of every kind. The last event is that the returned key is held. */
async function commotion(scene: Scene): Promise<string> {
  const [a, b] = [scene.key('a'), scene.key('b')]
  const first = await scene.grant({ claims: [{ key: a }, { key: b }] })
  const second = await scene.hold(a)
  await scene.store.update({ lease: second.lease, key: a, token: second.token, value: 'x' })
  await scene.store.release({ lease: first.lease, keys: [a], token: first.token })
  await scene.store.revoke({ target: { lease: first.lease } })
  const third = await scene.grant({ claims: [{ key: b, mode: 'shared' }] })
  await scene.claim(third.lease, { key: b, mode: 'shared', limit: 3 })
  await scene.store.revoke({ target: { prefix: a } })
  const last = scene.key('last')
  await scene.hold(last)
  return last
}

/** Makes more events than the store promises to keep, if that is not too many. */
async function manyEvents(scene: Scene): Promise<number> {
  const { eventsKept } = scene.store.guarantees
  const wanted = Math.min(2 * eventsKept + 4096, EVENTS_MOST)
  const keys = Array.from({ length: scene.limits.keysPerClaim }, () => scene.key('many'))
  const { lease } = await scene.grant()
  let made = 0
  while (made < wanted) {
    const some = keys.slice(0, Math.min(keys.length, scene.limits.claimsPerLease))
    const { token } = await scene.claim(lease, ...some)
    await scene.store.release({ lease, keys: some, token })
    made += 3 * some.length
  }
  return made
}

function checkOrder(events: readonly Event[]): void {
  for (let at = 1; at < events.length; at++) {
    const [one, next] = [events[at - 1]!, events[at]!]
    assert.ok(one.revision <= next.revision, `${next.revision} came after ${one.revision}`)
  }
  const each = events.map(({ revision, key, token, type }) => `${revision} ${key} ${token} ${type}`)
  assert.equal(new Set(each).size, each.length, 'an event came twice')
}

/** Applied one after the other, the events give the current state: none is missing. */
async function checkAgainstReading(scene: Scene, events: readonly Event[]): Promise<void> {
  const claims = new Map<string, string | undefined>()
  for (const { type, key, token, value } of events) {
    const name = `${key} ${token}`
    assert.equal(claims.has(name), type !== 'claimed', `'${type}' of ${name} does not fit`)
    if (type === 'removed') claims.delete(name)
    else claims.set(name, value)
  }
  const { keys } = await scene.store.read({ prefix: scene.prefix })
  const read = keys.flatMap((entry) =>
    entry.claims.map(({ key, token, value }) => [`${key} ${token}`, value] as const),
  )
  assert.deepEqual(new Map(claims), new Map(read))
}

function byKey(one: readonly unknown[], other: readonly unknown[]): number {
  return String(one[0]) < String(other[0]) ? -1 : 1
}
