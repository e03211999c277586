import { describe, expect, it } from 'vitest'
import { Leasehold } from '../../../../src/index.ts'
import { testStore } from '../../../../src/testing/index.ts'
import { FaultyStore } from '../../../client/faulty-store.ts'
import { changedStore } from '../../../setup/changed-store.ts'
import { inNewScene, SCENES } from '../../scenes/scene.ts'

/** A controller that records its calls. */
function controller() {
  const reported: string[] = []
  return {
    reported,
    onStarted: ({ id }: { id: string }) => reported.push(`${id} started`),
    onReturned: ({ id }: { id: string }) => reported.push(`${id} returned`),
    onStopped: ({ id }: { id: string }, { reason }: { reason: string }) =>
      reported.push(`${id} stopped: ${reason}`),
  }
}

describe.each(SCENES)('nodes on $name', ({ make }) => {
  const inScene = inNewScene(make)

  it(
    'are reported to a controller when they start, stop and return, once each',
    inScene(async (scene) => {
      const [a, b, c] = [await scene.open('a'), await scene.open('b'), await scene.open('c')]
      const { reported, ...listeners } = controller()
      const released = await a.registry.node('released', { address: 'r:1' })
      await b.registry.node('killed', { ttl: '2s', metadata: { rack: '7' } })
      const revoked = await a.registry.node('revoked')
      const watch = c.registry.nodes.watch(listeners)
      await watch.ready
      expect(watch.nodes).toMatchObject([
        { id: 'killed', metadata: { rack: '7' }, holder: 'b' },
        { id: 'released', address: 'r:1' },
        { id: 'revoked' },
      ])
      reported.splice(0)
      await released.release()
      await scene.store.revoke({ target: { lease: revoked.lease! } })
      scene.kill(b)
      await scene.until('all have stopped', () => watch.nodes.length === 0)
      await scene.pass(100)
      expect(reported.sort()).toEqual([
        'killed stopped: expired',
        'released stopped: released',
        'revoked stopped: revoked',
      ])
      reported.splice(0)
      await a.registry.node('killed')
      await a.registry.node('new')
      await scene.until('two have started', () => watch.nodes.length === 2)
      expect(reported).toEqual(['killed returned', 'new started'])
      watch.close()
    }),
  )

  it(
    'end the services that run on them, whether they are released, revoked or die',
    inScene(async (scene) => {
      const [a, b, c] = [await scene.open('a'), await scene.open('b'), await scene.open('c')]
      const released = await a.registry.node('released')
      const revoked = await a.registry.node('revoked')
      const killed = await b.registry.node('killed', { ttl: '2s' })
      for (const node of [released, revoked, killed]) {
        await node.register('s', { id: node.id, ttl: '1h' })
      }
      expect(await c.registry.find('s')).toMatchObject([
        { id: 'killed', node: 'killed' },
        { id: 'released', node: 'released' },
        { id: 'revoked', node: 'revoked' },
      ])
      const isGone = async (id: string) =>
        (await c.registry.find('s')).every((instance) => instance.id !== id)
      await released.release()
      await scene.until('one is gone', () => isGone('released'))
      await scene.store.revoke({ target: { lease: revoked.lease! } })
      await scene.until('two are gone', () => isGone('revoked'))
      if (!scene.store.guarantees.childLeases) return
      scene.kill(b)
      await scene.until('all are gone', () => isGone('killed'))
    }),
  )
})

describe('a watch of nodes', () => {
  it('reports once what stopped or returned during an outage', async () => {
    const { store, clock } = testStore()
    const link = new FaultyStore(store, clock)
    const near = await Leasehold.open(store, { clock })
    const far = await Leasehold.open(link, { clock })
    const [one, two] = [await near.registry.node('one'), await near.registry.node('two')]
    const { reported, ...listeners } = controller()
    const watch = far.registry.nodes.watch(listeners)
    await clock.advance(10)
    await watch.ready
    reported.splice(0)
    link.freeze()
    await one.release()
    await two.release()
    await near.registry.node('two')
    await clock.advance(30_000)
    expect(reported).toEqual([])
    link.thaw()
    await clock.advance(10_000)
    expect(reported.sort()).toEqual([
      'one stopped: released',
      'two returned',
      'two stopped: released',
    ])
    await clock.advance(60_000)
    expect(reported).toHaveLength(3)
  })

  it('reports expected nodes that are missing', async () => {
    const { store, clock } = testStore()
    const leasehold = await Leasehold.open(store, { clock })
    await leasehold.registry.node('here')
    const { reported, ...listeners } = controller()
    const watch = leasehold.registry.nodes.watch({ ...listeners, expected: ['here', 'gone'] })
    await clock.advance(10)
    await watch.ready
    await leasehold.registry.node('gone')
    await clock.advance(10)
    expect(reported).toEqual(['here started', 'gone stopped: absent', 'gone returned'])
  })

  it('continues when the controller fails, and reports it', async () => {
    const { store, clock } = testStore()
    const leasehold = await Leasehold.open(store, { clock })
    const events: unknown[] = []
    leasehold.on('recipe-event', ({ detail }) => events.push(detail))
    leasehold.registry.nodes.watch({
      onStarted: () => {
        throw new Error('at once')
      },
      onStopped: () => Promise.reject(new Error('later')),
    })
    await clock.advance(10)
    const node = await leasehold.registry.node('n')
    await clock.advance(10)
    await node.release()
    await clock.advance(10)
    expect(events).toEqual(['onStarted failed: Error: at once', 'onStopped failed: Error: later'])
    const wrong = { onStopped: 'call me' as never }
    expect(() => leasehold.registry.nodes.watch(wrong)).toThrowError(/onStopped is "call me"/)
  })
})

describe('a watch of nodes', () => {
  async function watching(options = {}) {
    const { store, clock } = testStore()
    const leasehold = await Leasehold.open(store, { clock, holder: 'a' })
    const { reported, ...listeners } = controller()
    const watch = leasehold.registry.nodes.watch({ ...listeners, ...options })
    await clock.advance(10)
    await watch.ready
    return { store, clock, leasehold, registry: leasehold.registry, reported, watch }
  }

  it('refuses invalid arguments', async () => {
    const { registry } = await watching()
    const watch = (options: unknown) => () => registry.nodes.watch(options as never)
    expect(watch(5)).toThrowError(/^options /)
    expect(watch({ expected: 'x' })).toThrowError(/^expected /)
    for (const name of ['onStopped', 'onReturned', 'onStarted']) {
      expect(watch({ [name]: 5 })).toThrowError(new RegExp(`^${name} `))
    }
  })

  it('shows the nodes in order, with their readable descriptions', async () => {
    const { store, clock, registry, watch } = await watching()
    const { lease } = (await store.grant({ holder: 'x', ttl: 60_000 })) as { lease: string }
    const long = { address: 'a'.repeat(513), metadata: { m: 'm'.repeat(1025) } }
    const said = {
      c: 'not json',
      d: '[]',
      e: '{"address":5}',
      f: JSON.stringify({ address: long.address }),
      g: JSON.stringify({ metadata: long.metadata }),
    }
    for (const [id, value] of Object.entries(said)) {
      await store.claim({ lease, claims: [{ key: `nodes/${id}`, value }] })
    }
    await store.claim({ lease, claims: [{ key: 'nodes/h' }] })
    const b = await registry.node('b', { address: 'b:1', metadata: { m: '' } })
    await registry.node('a')
    await clock.advance(10)
    const silent = { address: undefined, metadata: {} }
    expect(watch.nodes.slice(0, 2)).toEqual([
      expect.objectContaining({ id: 'a', ...silent }),
      { id: 'b', address: 'b:1', metadata: { m: '' }, holder: 'a', lease: b.lease, token: b.token },
    ])
    expect(watch.nodes.slice(2)).toMatchObject(
      ['c', 'd', 'e', 'f', 'g', 'h'].map((id) => ({ id, ...silent })),
    )
    expect([watch.live, watch.age()]).toEqual([true, 0])
  })

  it('reports who ended a node, and nothing after it is closed', async () => {
    const stops: unknown[] = []
    const onStopped = (_node: unknown, stop: unknown) => stops.push(stop)
    const { store, clock, registry, watch } = await watching({ onStopped })
    const [one, two] = [await registry.node('one'), await registry.node('two')]
    await clock.advance(10)
    await store.revoke({ target: { lease: one.lease! }, by: 'ada', why: 'a bad one' })
    await clock.advance(10)
    expect(stops).toEqual([{ reason: 'revoked', by: 'ada', why: 'a bad one' }])
    {
      using _ = watch
    }
    await two.release()
    await clock.advance(10)
    expect([stops.length, watch.live]).toEqual([1, false])
  })

  it('needs no listener', async () => {
    const { store, clock } = testStore()
    const leasehold = await Leasehold.open(store, { clock })
    const { registry } = leasehold
    const events: unknown[] = []
    leasehold.on('recipe-event', (reported) => events.push(reported))
    const watch = registry.nodes.watch()
    const node = await registry.node('n')
    await clock.advance(10)
    await node.release()
    await clock.advance(10)
    expect([watch.nodes, events]).toEqual([[], []])
  })

  it('reports nodes and nothing else', async () => {
    const { clock, registry, reported, watch } = await watching()
    await registry.register('s', { id: 'i' })
    await clock.advance(10)
    expect([reported, watch.nodes]).toEqual([[], []])
  })

  it('reports nothing before its watch is complete', async () => {
    const { store, clock } = testStore()
    const opens: (() => void)[] = []
    const slow = changedStore(store, {
      watch(target, observer) {
        if (!('prefix' in target) || target.prefix !== 'nodes/')
          return store.watch(target, observer)
        opens.push(() => store.watch(target, observer))
        return { close: () => {} }
      },
    })
    const { registry } = await Leasehold.open(slow, { clock })
    await registry.node('n')
    const { reported, ...listeners } = controller()
    registry.nodes.watch(listeners)
    await clock.advance(10)
    expect([opens.length, reported]).toEqual([1, []])
    opens[0]!()
    await clock.advance(10)
    expect(reported).toEqual(['n started'])
  })

  it('ignores waiters for the id of a node until one of them holds it', async () => {
    const { store, clock, registry, reported, watch } = await watching()
    const first = await registry.node('n')
    await clock.advance(10)
    reported.splice(0)
    const other = await Leasehold.open(store, { clock, holder: 'other' })
    const next = other.registry.node('n')
    await clock.advance(10)
    expect([reported, watch.nodes.map(({ token }) => token)]).toEqual([[], [first.token]])
    await first.release()
    await clock.advance(10)
    expect(reported).toEqual(['n stopped: released', 'n returned'])
    expect(watch.nodes.map(({ token }) => token)).toEqual([(await next).token])
  })

  it('reports how each node ended, even if all end at once', async () => {
    const { store, clock } = testStore()
    const link = new FaultyStore(store, clock)
    const { registry } = await Leasehold.open(link, { clock })
    const claim = async (...ids: string[]) => {
      const { lease } = (await store.grant({ holder: 'x', ttl: 3_600_000 })) as { lease: string }
      const claims = ids.map((id) => ({ key: `nodes/${id}` }))
      const { token } = (await store.claim({ lease, claims })) as { token: number }
      return { lease, token }
    }
    const both = await claim('one', 'two')
    const waiting = await claim('two')
    const { reported, ...listeners } = controller()
    const watch = registry.nodes.watch(listeners)
    await clock.advance(10)
    await watch.ready
    reported.splice(0)
    link.freeze()
    await store.release({ ...waiting, keys: ['nodes/two'] })
    await store.release({ ...both, keys: ['nodes/one'] })
    await store.revoke({ target: { lease: both.lease } })
    link.interrupt()
    link.thaw()
    await clock.advance(10_000)
    expect(reported.sort()).toEqual(['one stopped: released', 'two stopped: revoked'])
  })

  it('reports nothing after a listener has closed it', async () => {
    const { store, clock } = testStore()
    const { registry } = await Leasehold.open(store, { clock })
    const { lease } = (await store.grant({ holder: 'x', ttl: 60_000 })) as { lease: string }
    await store.claim({ lease, claims: [{ key: 'nodes/a' }, { key: 'nodes/b' }] })
    const reported: string[] = []
    const watch = registry.nodes.watch({
      expected: ['missing'],
      onStarted: ({ id }) => {
        reported.push(id)
        watch.close()
      },
      onStopped: ({ id }) => reported.push(id),
    })
    await clock.advance(10)
    expect(reported).toHaveLength(1)
  })

  it('reports a failing listener with its name and node', async () => {
    const { clock, leasehold, registry } = await watching({
      onStarted: () => {
        throw new Error('no')
      },
    })
    const events: unknown[] = []
    leasehold.on('recipe-event', ({ recipe, event, key, level }) =>
      events.push({ recipe, event, key, level }),
    )
    await registry.node('n')
    await clock.advance(10)
    expect(events).toEqual([
      { recipe: 'registry', event: 'failed', key: 'nodes/n', level: 'error' },
    ])
  })
})

describe('a disconnected node', () => {
  it('returns with its services on it, under its new lease', async () => {
    const { store, clock } = testStore()
    const link = new FaultyStore(store, clock)
    const near = await Leasehold.open(store, { clock })
    const far = await Leasehold.open(link, { clock })
    const node = await far.registry.node('n', { ttl: '5s' })
    const service = await node.register('s', { id: 'i', ttl: '1h' })
    const before = node.lease
    link.freeze()
    await clock.advance(20_000)
    expect(await near.registry.find('s', { status: 'any' })).toEqual([])
    link.thaw()
    await clock.advance(30_000)
    expect(node.state).toBe('present')
    expect(node.lease).not.toBe(before)
    expect(service.state).toBe('present')
    expect(await near.registry.find('s')).toMatchObject([{ id: 'i', node: 'n' }])
    const { lease } = await store.read({ lease: service.lease! })
    expect(lease?.parent).toBe(node.lease)
  })
})
