import { describe, expect, it } from 'vitest'
import type { Leasehold, Permit } from '../../../src/index.ts'
import { inNewScene, SCENES, type Scene } from '../scenes/scene.ts'
import { gpus, queueReaches } from './clients.ts'

describe.each(SCENES)('a pool on $name', ({ make }) => {
  const inScene = inNewScene(make)

  const open = (scene: Scene, ...names: string[]): Promise<Leasehold[]> =>
    Promise.all(names.map((name) => scene.open(name)))

  it(
    'gives each resource to one request, and to a waiter when it is returned',
    inScene(async (scene) => {
      const [a, b] = await open(scene, 'a', 'b')
      const mine = a!.pool('gpu', gpus(2))
      const first = await mine.take({ tenant: 'x' })
      const theirs = b!.pool('gpu')
      const second = await theirs.take({ tenant: 'y' })
      expect([first.resource, second.resource]).toEqual(['gpu-0', 'gpu-1'])
      expect(second.token).not.toBe(first.token)
      await queueReaches(scene, 0)
      const third = theirs.take({ tenant: 'y' })
      await queueReaches(scene, 1)
      expect((await mine.tryTake({ tenant: 'x' })).permit).toBeUndefined()
      await first.release()
      const next = await third
      expect(next.resource).toBe('gpu-0')
      expect(next.token).toBeGreaterThan(first.claimToken)
      await queueReaches(scene, 0)
    }),
  )

  it(
    'never has more permits than resources, under concurrent requests',
    inScene(async (scene) => {
      const clients = await open(scene, 'a', 'b', 'c')
      clients[0]!.pool('gpu', gpus(2))
      await (await clients[0]!.pool('gpu').take({ tenant: 't0' })).release()
      const held = new Map<string, Permit>()
      const tokens = new Set<number>()
      const use = async (client: Leasehold, tenant: string) => {
        const permit = await client.pool('gpu').take({ tenant })
        expect(held.has(permit.resource)).toBe(false)
        held.set(permit.resource, permit)
        tokens.add(permit.token)
        await scene.store.read({ key: 'x' })
        held.delete(permit.resource)
        await permit.release()
      }
      const all = clients.flatMap((client, i) => [0, 1, 2, 3].map(() => use(client, `t${i}`)))
      await scene.pass(50)
      await Promise.all(all)
      expect(tokens.size).toBe(12)
    }),
  )

  it(
    'serves the tenant that holds least for its weight, then by priority, then in order',
    inScene(async (scene) => {
      const [a, b] = await open(scene, 'a', 'b')
      const tenants = { big: { weight: 2 }, small: { weight: 1 } }
      const pool = a!.pool('gpu', gpus(3, { tenants }))
      const held = await pool.take({ tenant: 'big', count: 3 })
      const order: string[] = []
      const ask = async (client: Leasehold, tenant: string, kind: string, priority = 0) => {
        const permit = await client.pool('gpu').take({ tenant, kind, priority })
        order.push(kind)
        return permit
      }
      const waits: Promise<Permit>[] = []
      const asks: [Leasehold, string, string, number?][] = [
        [a!, 'big', 'b1'],
        [b!, 'big', 'b2'],
        [a!, 'big', 'b3', 5],
        [b!, 'big', 'b4'],
        [b!, 'small', 's1'],
      ]
      for (const it of asks) {
        const wait = ask(...it)
        // The last one is still in the queue when the scene ends.
        wait.catch(() => {})
        waits.push(wait)
        await queueReaches(scene, waits.length)
      }
      await held.release()
      const first = await Promise.all([waits[2]!, waits[0]!, waits[4]!])
      // Two of three are for the tenant of weight 2: first the urgent one, then the oldest.
      expect([...order].sort()).toEqual(['b1', 'b3', 's1'])
      await first[2]!.release()
      await scene.until('the next is served', () => order.length === 4)
      expect(order[3]).toBe('b2')
    }),
  )

  it(
    'takes several at once or none, and small requests do not starve a large one',
    inScene(async (scene) => {
      const [a, b] = await open(scene, 'a', 'b')
      const pool = a!.pool('gpu', gpus(4))
      const singles = [await pool.take({ tenant: 'x' }), await pool.take({ tenant: 'x' })]
      await queueReaches(scene, 0)
      const large = b!.pool('gpu').take({ tenant: 'y', count: 4 })
      await queueReaches(scene, 1)
      const small = pool.take({ tenant: 'x', kind: 'small' })
      await queueReaches(scene, 2)
      await scene.pass(100)
      await singles[0]!.release()
      await scene.pass(100)
      await queueReaches(scene, 2)
      await singles[1]!.release()
      const four = await large
      expect(four.resources).toEqual(['gpu-0', 'gpu-1', 'gpu-2', 'gpu-3'])
      expect(
        new Set(
          (await scene.store.read({ prefix: 'pool/gpu/r/' })).keys.map(
            ({ claims }) => claims[0]!.token,
          ),
        ),
      ).toEqual(new Set([four.token]))
      await four.release()
      expect((await small).resource).toBe('gpu-0')
    }),
  )

  it(
    'serves requests by attributes and by shares',
    inScene(async (scene) => {
      const [a] = await open(scene, 'a')
      const pool = a!.pool('gpu', {
        resources: [
          { name: 't4', memory: 16, model: 'T4' },
          { name: 'h100', memory: 80, model: 'H100', shares: 4 },
        ],
      })
      const quarter = await pool.take({ tenant: 'x', where: 'memory >= 40', shares: 1 })
      expect(quarter.keys).toEqual(['pool/gpu/r/h100/0'])
      const half = await pool.take({ tenant: 'y', where: { model: 'H100' }, shares: 2 })
      expect(half.keys).toEqual(['pool/gpu/r/h100/1', 'pool/gpu/r/h100/2'])
      const whole = { tenant: 'x', where: { memory: { atLeast: 40 } } }
      expect((await pool.tryTake(whole)).permit).toBeUndefined()
      expect((await pool.tryTake({ tenant: 'x' })).permit?.resource).toBe('t4')
      await Promise.all([quarter.release(), half.release()])
      await scene.pass(20)
      expect((await pool.take(whole)).keys).toHaveLength(4)
    }),
  )

  it(
    'skips a dead waiter, and frees the resources of a dead holder',
    inScene(async (scene) => {
      const [a, b, c] = await open(scene, 'a', 'b', 'c')
      const held = await a!.pool('gpu', gpus(1)).take({ tenant: 'x', strategy: 'lock', ttl: '2s' })
      await queueReaches(scene, 0)
      const dead = b!.pool('gpu').take({ tenant: 'y' })
      dead.catch(() => {})
      await queueReaches(scene, 1)
      const alive = c!.pool('gpu').take({ tenant: 'z' })
      await queueReaches(scene, 2)
      const queue = await scene.store.read({ key: 'pool/gpu/line' })
      scene.kill(b!)
      // Its lease ends a little earlier than it would by itself.
      await scene.store.revoke({ target: { lease: queue.claims[0]!.lease } })
      scene.kill(a!)
      const permit = await Promise.race([alive, scene.pass(3000).then(() => alive)])
      expect(permit.token).toBeGreaterThan(held.claimToken)
    }),
  )

  it(
    'leaves no queue claim and no permit behind when a wait ends',
    inScene(async (scene) => {
      const [a, b] = await open(scene, 'a', 'b')
      await a!.pool('gpu', gpus(1)).take({ tenant: 'x' })
      const timed = b!
        .pool('gpu')
        .take({ tenant: 'y', wait: 100 })
        .catch((error) => error)
      const controller = new AbortController()
      const { signal } = controller
      const aborted = b!
        .pool('gpu')
        .take({ tenant: 'y', signal })
        .catch((error) => error)
      await scene.pass(50)
      controller.abort()
      await scene.pass(100)
      expect((await timed).code).toBe('timeout')
      expect((await aborted).code).toBe('aborted')
      await queueReaches(scene, 0)
    }),
  )

  it(
    'is defined once, and redefined only by an explicit call',
    inScene(async (scene) => {
      const [a, b] = await open(scene, 'a', 'b')
      await expect(b!.pool('gpu').take({ tenant: 'x' })).rejects.toThrowError(/is not defined/)
      await a!.pool('gpu', gpus(1)).take({ tenant: 'x' })
      const other = b!.pool('gpu', gpus(2))
      await expect(other.take({ tenant: 'x' })).rejects.toThrowError(
        /already has a different definition/,
      )
      await queueReaches(scene, 0)
      const waits = a!.pool('gpu').take({ tenant: 'y' })
      await queueReaches(scene, 1)
      await other.redefine(gpus(2))
      expect((await waits).resource).toBe('gpu-1')
      expect((await scene.store.read({ key: 'pool/gpu/definition' })).count).toBe(1)
    }),
  )

  it(
    'remembers the usage of each tenant, so that long work gives no advantage',
    inScene(async (scene) => {
      const [a, b] = await open(scene, 'a', 'b')
      const pool = a!.pool('gpu', gpus(1))
      const long = await pool.take({ tenant: 'long', ttl: '10s' })
      await scene.pass(600)
      const order: string[] = []
      const ask = async (client: Leasehold, tenant: string) => {
        const permit = await client.pool('gpu').take({ tenant, ttl: '10s' })
        order.push(tenant)
        await permit.release()
      }
      const waits = [ask(a!, 'long')]
      await queueReaches(scene, 1)
      waits.push(ask(b!, 'short'), ask(b!, 'short'))
      await queueReaches(scene, 3)
      await long.release()
      await scene.pass(50)
      await Promise.all(waits)
      expect(order).toEqual(['short', 'short', 'long'])
    }),
  )
})
