import { expect, it } from 'vitest'
import type { Claimed, LeaseStore, Notice } from '../../src/port/index.ts'

/** A store on a real engine, and a lease in it. */
export interface ReleaseScene {
  readonly store: LeaseStore
  readonly lease: string
}

export async function claim({ store, lease }: ReleaseScene, key: string, shared = false) {
  const claims = [shared ? { key, mode: 'shared' as const } : { key }]
  return ((await store.claim({ lease, claims })) as Claimed).token
}

export function release(scene: ReleaseScene, key: string, token: number, request?: string) {
  return scene.store.release({ lease: scene.lease, keys: [key], token, request })
}

/** Keys under a prefix, all claimed. */
export async function claimMany(scene: ReleaseScene, prefix: string, count: number) {
  const keys = Array.from({ length: count }, (_, at) => `${prefix}${at}`)
  const tokens = await Promise.all(keys.map((key) => claim(scene, key)))
  return keys.map((key, at) => ({ key, token: tokens[at]! }))
}

/** The rules for a store that combines the releases of one turn of the event loop. */
export function itReleasesTogether(scene: () => ReleaseScene): void {
  const countOf = async (key: string) => (await scene().store.read({ key })).count

  it('share a revision, up to a limit, and free each key', async () => {
    const { store } = scene()
    const held = await claimMany(scene(), 'many/', 40)
    expect(new Set(held.map(({ token }) => token)).size).toBe(40)
    const answers = await Promise.all(held.map(({ key, token }) => release(scene(), key, token)))
    expect(new Set(answers.map(({ revision }) => revision)).size).toBe(2)
    expect((await store.read({ prefix: 'many/' })).keys).toEqual([])
    const { tenures } = await store.read({ history: 'many/39' })
    expect(tenures).toMatchObject([{ token: held[39]!.token, end: { reason: 'released' } }])
  })

  it('are reported once each, with all events of a revision in one notice', async () => {
    const { store } = scene()
    const held = await claimMany(scene(), 'told/', 40)
    const live = listen(store, 'told/')
    const begun = await live.begun
    const answers = await Promise.all(
      held.map(({ key, token }, at) => release(scene(), key, token, at % 2 ? key : undefined)),
    )
    const last = Math.max(...answers.map(({ revision }) => revision))
    const later = listen(store, 'told/', begun)
    for (const { until } of [live, later]) {
      const events = await until(last)
      expect(events.map(({ key }) => key).sort()).toEqual(held.map(({ key }) => key).sort())
      expect(new Set(events.map(({ type }) => type))).toEqual(new Set(['removed']))
    }
    const revisions = live.notices.map((it) =>
      it.type === 'events' ? [...new Set(it.events.map(({ revision }) => revision))] : [],
    )
    // There are fewer revisions than keys, and no revision is in two notices.
    expect(revisions.flat().length).toBeLessThan(5)
    expect(new Set(revisions.flat()).size).toBe(revisions.flat().length)
    for (const { close } of [live, later]) close()
  })

  it('are refused one by one, without stopping the others', async () => {
    const [first, last] = [await claim(scene(), 'one/first'), await claim(scene(), 'one/last')]
    const [done, refused, also] = await Promise.allSettled([
      release(scene(), 'one/first', first),
      release(scene(), 'one/last', first),
      release(scene(), 'one/last', last),
    ])
    expect(done.status).toBe('fulfilled')
    expect(refused).toMatchObject({ reason: { code: 'claim-not-found' } })
    expect(also.status).toBe('fulfilled')
    expect(await countOf('one/first')).toBe(0)
    expect(await countOf('one/last')).toBe(0)
  })

  it('may be of the same key, which one statement cannot write twice', async () => {
    const tokens: number[] = []
    for (let count = 0; count < 3; count++) tokens.push(await claim(scene(), 'same', true))
    const answers = await Promise.all(tokens.map((token) => release(scene(), 'same', token)))
    expect(new Set(answers.map(({ revision }) => revision)).size).toBe(3)
    expect(await countOf('same')).toBe(0)
  })

  it('are carried out once if the same release is requested twice', async () => {
    const [once, other] = [await claim(scene(), 'twice/once'), await claim(scene(), 'twice/other')]
    const answers = await Promise.all([
      release(scene(), 'twice/once', once, 'the same'),
      release(scene(), 'twice/other', other),
      release(scene(), 'twice/once', once, 'the same'),
    ])
    expect(answers[2]).toEqual(answers[0])
    expect(await release(scene(), 'twice/once', once, 'the same')).toEqual(answers[0])
  })
}

function listen(store: LeaseStore, prefix: string, from?: number) {
  const notices: Notice[] = []
  let heard = () => {}
  const watch = store.watch({ prefix, from }, (notice) => {
    notices.push(notice)
    heard()
  })
  const first = async <Found>(find: () => Found | undefined): Promise<Found> => {
    for (;;) {
      const found = find()
      if (found !== undefined) return found
      await new Promise<void>((resolve) => {
        heard = resolve
      })
    }
  }
  const events = () => notices.flatMap((it) => (it.type === 'events' ? it.events : []))
  return {
    notices,
    begun: first(() => notices.find((it) => it.type === 'watching')?.revision),
    until: (revision: number) =>
      first(() => (events().some((event) => event.revision >= revision) ? events() : undefined)),
    close: () => watch.close(),
  }
}
