import { describe, expect, it } from 'vitest'
import type { Change, Instance } from '../../../src/index.ts'
import { inNewScene, SCENES } from '../scenes/scene.ts'

const ids = (instances: readonly Instance[]) => instances.map(({ id }) => id)

describe.each(SCENES)('the registry on $name', ({ make }) => {
  const inScene = inNewScene(make)

  it(
    'finds an instance as it described itself, by name, capability, tags and zone',
    inScene(async (scene) => {
      const [a, b] = [await scene.open('a'), await scene.open('b')]
      await a.registry.register('embedder', {
        id: 'one',
        address: '10.0.0.7:8080',
        endpoints: { metrics: 'http://10.0.0.7:9090' },
        capabilities: ['embed', 'rerank'],
        tags: ['gpu'],
        metadata: { model: 'm-3' },
        weight: 2,
        zone: 'eu-1',
      })
      await a.registry.register('embedder', { id: 'two', capabilities: ['embed'], zone: 'eu-2' })
      await a.registry.register('other', { id: 'three', capabilities: ['embed'] })
      const [one] = await b.registry.find('embedder', { capability: ['rerank', 'embed'] })
      expect(one).toMatchObject({
        service: 'embedder',
        id: 'one',
        address: '10.0.0.7:8080',
        endpoints: { metrics: 'http://10.0.0.7:9090' },
        metadata: { model: 'm-3' },
        weight: 2,
        zone: 'eu-1',
        status: 'passing',
        holder: 'a',
      })
      expect(ids(await b.registry.find('embedder', { capability: 'embed' }))).toEqual([
        'one',
        'two',
      ])
      expect(ids(await b.registry.find('embedder', { tags: ['gpu'] }))).toEqual(['one'])
      expect(ids(await b.registry.find('embedder', { zone: 'eu-2' }))).toEqual(['two'])
      expect(await b.registry.find('embed')).toEqual([])
      expect(await b.registry.services()).toEqual(['embedder', 'other'])
    }),
  )

  it(
    'shows updates, reports and maintenance, to find and to watch',
    inScene(async (scene) => {
      const [a, b] = [await scene.open('a'), await scene.open('b')]
      const me = await a.registry.register('s', { id: 'i', tags: ['x'], metadata: { v: '1' } })
      const watch = b.registry.watch('s', { status: 'any' })
      await watch.ready
      const both = async () => {
        const [found] = await b.registry.find('s', { status: 'any' })
        await scene.until('the watcher sees the same', () => {
          return JSON.stringify(watch.instances[0]) === JSON.stringify(found)
        })
        return found
      }
      await me.update({ metadata: { v: '2' }, weight: 5 })
      expect(await both()).toMatchObject({ tags: ['x'], metadata: { v: '2' }, weight: 5 })
      await me.report('critical', 'out of memory')
      expect(await both()).toMatchObject({ status: 'critical', note: 'out of memory' })
      expect(await b.registry.find('s')).toEqual([])
      await me.maintenance(true, 'new disks')
      expect(await both()).toMatchObject({ status: 'maintenance', note: 'new disks' })
      await me.maintenance(false)
      await me.report('warning', 'slow')
      expect(await both()).toMatchObject({ status: 'warning', note: 'slow' })
      expect(ids(await b.registry.find('s'))).toEqual(['i'])
      watch.close()
    }),
  )

  it(
    'lets an instance leave at once when it is released, revoked or leaves its block',
    inScene(async (scene) => {
      const [a, b] = [await scene.open('a'), await scene.open('b')]
      const watch = b.registry.watch('s')
      const left: Record<string, string> = {}
      watch.on('left', ({ instance, reason }) => {
        left[instance.id] = reason
      })
      const released = await a.registry.register('s', { id: 'released' })
      const revoked = await a.registry.register('s', { id: 'revoked' })
      await watch.ready
      await scene.until('both are seen', () => watch.instances.length === 2)
      {
        await using _ = await a.registry.register('s', { id: 'scoped' })
        await scene.until('all are seen', () => watch.instances.length === 3)
      }
      await released.release()
      await released.release()
      await scene.store.revoke({ target: { lease: revoked.lease! }, by: 'ada', why: 'a bad one' })
      await scene.until('all have left', () => watch.instances.length === 0)
      expect(left).toEqual({ released: 'released', scoped: 'released', revoked: 'revoked' })
      await scene.until('it notices', () => revoked.signal.aborted)
      expect(revoked.signal.reason).toMatchObject({ by: 'ada', why: 'a bad one' })
      expect(revoked.state).toBe('ended')
      expect(await b.registry.find('s', { status: 'any' })).toEqual([])
    }),
  )

  it(
    'removes an instance whose process died after its ttl, and not before',
    inScene(async (scene) => {
      const [a, b] = [await scene.open('a'), await scene.open('b')]
      await a.registry.register('s', { id: 'mortal', ttl: '2s' })
      const watch = b.registry.watch('s')
      await watch.ready
      const end = new Promise<Change>((resolve) => watch.on('left', resolve))
      scene.kill(a)
      await scene.pass(500)
      expect(ids(watch.instances)).toEqual(['mortal'])
      await scene.until('it has left', () => watch.instances.length === 0)
      expect(await end).toMatchObject({ type: 'left', reason: 'expired' })
      expect(await b.registry.find('s', { status: 'any' })).toEqual([])
    }),
  )

  it(
    'gives the id of a dead instance to its replacement',
    inScene(async (scene) => {
      const [a, b] = [await scene.open('a'), await scene.open('b')]
      await a.registry.register('s', { id: 'i', ttl: '2s', tags: ['old'] })
      await expect(b.registry.register('s', { id: 'i', wait: 0 })).rejects.toMatchObject({
        code: 'timeout',
      })
      scene.kill(a)
      let isIn = false
      const next = b.registry.register('s', { id: 'i', tags: ['new'] })
      void next.then(() => {
        isIn = true
      })
      await scene.until('it is registered', () => isIn)
      const [found] = await b.registry.find('s')
      expect(found).toMatchObject({ tags: ['new'], holder: 'b', token: (await next).token })
    }),
  )

  it(
    'yields the current instances and every later change',
    inScene(async (scene) => {
      const [a, b] = [await scene.open('a'), await scene.open('b')]
      const first = await a.registry.register('s', { id: 'first' })
      const watch = b.registry.watch('s')
      await watch.ready
      const seen: string[] = []
      const reading = (async () => {
        for await (const change of watch) {
          seen.push(`${change.instance.id} ${change.type}`)
          if (change.type === 'left') seen.push(change.reason)
        }
        return 'over'
      })()
      await scene.until('1', () => seen.length === 1)
      const second = await a.registry.register('s', { id: 'second' })
      await scene.until('2', () => seen.length === 2)
      await second.update({ weight: 3 })
      await scene.until('3', () => seen.length === 3)
      await first.release()
      await scene.until('4', () => seen.length === 5)
      await second.report('critical')
      await scene.until('5', () => seen.length === 7)
      watch.close()
      expect(await reading).toBe('over')
      expect(seen).toEqual([
        'first joined',
        'second joined',
        'second changed',
        'first left',
        'released',
        'second left',
        'unwanted',
      ])
    }),
  )

  it(
    'publishes the load at most once a second, the latest last',
    inScene(async (scene) => {
      const [a, b] = [await scene.open('a'), await scene.open('b')]
      const me = await a.registry.register('s', { id: 'i' })
      const watch = b.registry.watch('s')
      await watch.ready
      let changes = 0
      watch.on('changed', () => changes++)
      for (let load = 1; load <= 50; load++) me.reportLoad(load)
      await scene.until('the first load is reported', () => watch.instances[0]?.load === 50)
      for (let load = 51; load <= 99; load++) me.reportLoad(load)
      await scene.until('the last load is reported', () => watch.instances[0]?.load === 99)
      expect(changes).toBe(2)
      watch.close()
    }),
  )
})
