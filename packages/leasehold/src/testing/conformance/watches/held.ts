import assert from 'node:assert/strict'
import { type Event, type Granted, holders, type Key, type Token } from '../../../port/index.ts'
import type { Scene } from '../scene.ts'
import type { Topic } from '../topic.ts'
import type { WatchRecorder } from './watch-recorder.ts'

/** When a watch reports that a claim begins to hold. */
export const held: Topic = {
  'a claim on a free key is reported as claimed and as held, in one revision': async (scene) => {
    const { key, recorder } = await watched(scene)
    const { lease, token, revision } = await scene.grant({ claims: [{ key, value: 'v' }] })
    await recorder.eventsUntil(isHeld(key, token))
    assert.deepEqual(outline(recorder), [`claimed ${token}`, `held ${token}`])
    const [claimed, held] = recorder.events
    assert.deepEqual({ ...held, type: 'claimed' }, { ...claimed })
    assert.deepEqual([held!.revision, held!.lease, held!.value], [revision, lease, 'v'])
    assert.equal((await scene.read(key)).claims[0]!.heldSince, held!.at)
  },

  'a waiter is reported as held in the revision that frees the key, with its latest value': async (
    scene,
  ) => {
    const { key, recorder } = await watched(scene)
    const [first, second] = [await scene.hold(key), await scene.hold(key)]
    await scene.store.update({ lease: second.lease, key, token: second.token, value: 'new' })
    const { revision } = await release(scene, key, first)
    const held = (await recorder.eventsUntil(isHeld(key, second.token))).at(-1)!
    assert.deepEqual([held.revision, held.value, held.end], [revision, 'new', undefined])
    assert.deepEqual(outline(recorder), [
      ...[`claimed ${first.token}`, `held ${first.token}`, `claimed ${second.token}`],
      ...[`updated ${second.token}`, `removed ${first.token}`, `held ${second.token}`],
    ])
    assert.equal((await scene.read(key)).claims[0]!.heldSince, held.at)
  },

  'the next claim is reported as held however the one before it ends': async (scene) => {
    const { store, ttl } = scene
    const ways: Record<string, (key: Key, one: Granted) => Promise<unknown>> = {
      released: (key, one) => release(scene, key, one),
      'revoked with its lease': (_, { lease }) => store.revoke({ target: { lease } }),
      'revoked alone': (key, { token }) => store.revoke({ target: { key, token } }),
      expired: async (_, { lease }) => scene.untilGone(lease, ttl),
      broken: async (_, { lease }) => {
        await store.revoke({ target: { lease }, after: ttl })
        await scene.untilGone(lease, ttl)
      },
    }
    for (const [way, end] of Object.entries(ways)) {
      const { key, recorder } = await watched(scene)
      const first = await scene.hold(key, way === 'expired' ? { ttl } : {})
      const second = await scene.hold(key)
      await end(key, first)
      const events = await recorder.eventsUntil(isHeld(key, second.token))
      assert.equal(events.at(-2)!.type, 'removed', way)
      checkHeld(events)
      recorder.close()
    }
  },

  'as many shared claims are reported as held as may hold': async (scene) => {
    const { key, recorder } = await watched(scene)
    const shared = { key, mode: 'shared', limit: 2 } as const
    const line: Granted[] = []
    for (const claim of [{ key }, shared, shared, shared, { key }]) {
      line.push(await scene.grant({ claims: [claim] }))
    }
    for (const at of [0, 2, 1, 3]) await release(scene, key, line[at]!)
    checkHeld(await recorder.eventsUntil(isHeld(key, line[4]!.token)))
    const order = recorder.events.filter(({ type }) => type === 'held').map(({ token }) => token)
    assert.deepEqual(
      order,
      line.map(({ token }) => token),
    )
  },

  'a claim on several keys is reported as held on each key when it begins to hold it': async (
    scene,
  ) => {
    const [free, a, b] = [scene.key('free'), scene.key('a'), scene.key('b')]
    const recorder = scene.watchPrefix(scene.prefix)
    await recorder.next('watching')
    const both = await scene.grant({ claims: [{ key: a }, { key: b }] })
    const { token } = await scene.grant({ claims: [{ key: a }, { key: free }, { key: b }] })
    const { revision } = await scene.store.release({ ...both, keys: [a, b] })
    const events = await recorder.eventsUntil((event) => event.revision === revision)
    checkHeld(recorder.events)
    const keysIn = (wanted: number) =>
      recorder.events
        .filter(({ type, ...event }) => type === 'held' && event.revision === wanted)
        .map(({ key }) => key)
        .sort()
    assert.deepEqual([keysIn(token), keysIn(revision)], [[free], [a, b].sort()])
    assert.ok(events.length > 0)
  },

  'a waiter that leaves before its turn is never reported as held': async (scene) => {
    const { key, recorder } = await watched(scene)
    const [first, second] = [await scene.hold(key), await scene.hold(key)]
    const { revision } = await release(scene, key, second)
    await release(scene, key, first)
    const last = await scene.hold(key)
    const events = await recorder.eventsUntil(isHeld(key, last.token))
    checkHeld(events)
    assert.deepEqual(
      events.filter((event) => event.revision === revision).map(({ type }) => type),
      ['removed'],
    )
    assert.ok(!events.some(isHeld(key, second.token)))
  },
}

async function watched(scene: Scene): Promise<{ key: Key; recorder: WatchRecorder }> {
  const key = scene.key()
  const recorder = scene.watchPrefix(key)
  await recorder.next('watching')
  return { key, recorder }
}

function release(scene: Scene, key: Key, { lease, token }: Granted) {
  return scene.store.release({ lease, keys: [key], token })
}

function outline({ events }: WatchRecorder): string[] {
  return events.map(({ type, token }) => `${type} ${token}`)
}

/** Whether a claim on this key holds: the one with this token, or any. */
export function isHeld(key: Key, token?: Token): (event: Event) => boolean {
  return (event) =>
    event.type === 'held' && event.key === key && (token === undefined || event.token === token)
}

/**
 * Checks all events of some keys, from the beginning: after each revision, exactly those claims have
 * been reported as held that `holders()` says hold; each once, and after all removals of the revision.
 */
export function checkHeld(events: readonly Event[]): void {
  const queues = new Map<Key, Event[]>()
  const reported = new Set<string>()
  for (const [at, event] of events.entries()) {
    const { revision, type, key, token } = event
    const [name, where] = [`${key} ${token}`, `revision ${revision}`]
    const queue = queues.get(key) ?? []
    const others = queue.filter((claim) => claim.token !== token)
    if (type === 'claimed') queues.set(key, [...queue, event])
    else
      assert.ok(others.length < queue.length, `${where}: '${type}' of ${name}, which is not there`)
    if (type === 'removed') {
      queues.set(key, others)
      const before = events.slice(0, at).filter((each) => each.revision === revision)
      assert.ok(before.every(isRemoved), `${where}: a claim was held before ${name} was removed`)
    }
    if (type === 'held') {
      assert.ok(!reported.has(name), `${where}: ${name} was reported as held twice`)
      reported.add(name)
    }
    if (events[at + 1]?.revision !== revision) checkHolders(queues, reported, where)
  }
}

function checkHolders(
  queues: ReadonlyMap<Key, readonly Event[]>,
  reported: ReadonlySet<string>,
  where: string,
): void {
  for (const [key, queue] of queues) {
    const wanted = queue.slice(0, holders(queue)).map(({ token }) => token)
    const announced = queue
      .map(({ token }) => token)
      .filter((token) => reported.has(`${key} ${token}`))
    assert.deepEqual(announced, wanted, `${where}: these claims were reported as holders of ${key}`)
  }
}

function isRemoved({ type }: Event): boolean {
  return type === 'removed'
}
