import { describe, expect, it } from 'vitest'
import { Leasehold, type Registration } from '../../../../src/index.ts'
import { testStore } from '../../../../src/testing/index.ts'
import { FaultyStore } from '../../../client/faulty-store.ts'
import { changedStore } from '../../../setup/changed-store.ts'

/** A store that can forget its history, and a watcher behind a faulty link. */
async function scene() {
  const { store, clock } = testStore()
  let forgotten = 0
  const forgetful = changedStore(store, {
    watch(target, observer) {
      const isKnown = !('from' in target) || target.from === undefined || target.from >= forgotten
      if (isKnown) return store.watch(target, observer)
      queueMicrotask(() => observer({ type: 'compacted', oldest: forgotten }))
      return { close: () => {} }
    },
  })
  const link = new FaultyStore(forgetful, clock)
  const far = await Leasehold.open(link, { clock, holder: 'far' })
  const near = await Leasehold.open(store, { clock, holder: 'near' })
  /** Forgets the history until now. */
  const forget = async () => {
    forgotten = (await store.read({ prefix: '' })).revision
  }
  return { store, clock, link, far: far.registry, near: near.registry, forget }
}

async function registered(registry: Awaited<ReturnType<typeof scene>>['near'], count: number) {
  const all: Registration[] = []
  for (let at = 0; at < count; at++) all.push(await registry.register('s', { id: `i${at}` }))
  return all
}

describe('an instance that ended during an outage', () => {
  it('has left as unseen if the store has forgotten why, and is delayed if it is one of many', async () => {
    const { clock, link, far, near, forget } = await scene()
    const all = await registered(near, 6)
    const watch = far.watch('s', { status: 'any' })
    await clock.advance(10)
    await watch.ready
    const reasons: string[] = []
    watch.on('left', ({ reason }) => reasons.push(reason))
    link.freeze()
    for (const one of all) await one.release()
    await forget()
    link.interrupt()
    link.thaw()
    await clock.advance(10_000)
    expect(reasons).toEqual(['unseen', 'unseen'])
    expect(watch.all).toMatchObject(
      Array(4).fill({ status: 'lapsed', note: 'its lease has ended (unseen)' }),
    )
  })

  it('has left with its own reason if the store still knows it', async () => {
    const { store, clock, link, far, near } = await scene()
    const [one, two] = await registered(near, 3)
    const watch = far.watch('s')
    await clock.advance(10)
    await watch.ready
    const reasons: Record<string, string> = {}
    watch.on('left', ({ instance, reason }) => {
      reasons[instance.id] = reason
    })
    link.freeze()
    await one!.release()
    await store.revoke({ target: { lease: two!.lease! } })
    link.interrupt()
    link.thaw()
    await clock.advance(10_000)
    expect(reasons).toEqual({ i0: 'released', i1: 'revoked' })
  })

  it('is reported for nodes too', async () => {
    const { clock, link, far, near, forget } = await scene()
    const [gone, back] = [await near.node('gone'), await near.node('back')]
    const reported: string[] = []
    const watch = far.nodes.watch({
      onStopped: ({ id }, { reason }) => reported.push(`${id} ${reason}`),
      onReturned: ({ id }) => reported.push(`${id} returned`),
    })
    await clock.advance(10)
    await watch.ready
    link.freeze()
    await gone.release()
    await back.release()
    await near.node('back')
    await forget()
    link.interrupt()
    link.thaw()
    await clock.advance(10_000)
    expect(reported.sort()).toEqual(['back returned', 'back unseen', 'gone unseen'])
  })

  it('is treated as expired by a checker, because it may be dead', async () => {
    const { store, clock, link, far, near, forget } = await scene()
    const probes: string[] = []
    const checker = far.checker({
      probe: async ({ host }) => {
        probes.push(host)
        return { status: 'critical', note: 'dead' }
      },
    })
    const check = { tcp: true, every: '1h', down: 3 } as const
    const one = await near.register('s', { id: 'one', address: 'one:8080', check })
    await clock.advance(3000)
    expect(probes).toEqual(['one'])
    link.freeze()
    await one.release()
    await forget()
    link.interrupt()
    link.thaw()
    await clock.advance(10_000)
    // It is probed once more.
    expect(probes).toEqual(['one', 'one'])
    await clock.advance(180_000)
    expect((await store.read({ prefix: 'health/' })).keys).toEqual([])
    await checker.close()
  })
})
