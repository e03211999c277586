import { readFileSync } from 'node:fs'
import { register } from '@grpc/grpc-js-xds'
import type { RegisterOptions } from 'leasehold'
import { beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../../../../leasehold/test/engines/engine.ts'
import { exampleFile, gatewayScene, massFailure } from '../gateway-scene.ts'
import { grpcBackend, grpcClient } from './grpc-backends.ts'

const WAIT = { timeout: 30_000, interval: 20 }
const UNAVAILABLE = 'code 14'
const HOLD = 6000

describe('@grpc/grpc-js-xds with examples/discovery/grpc-bootstrap.json', () => {
  let scene: Awaited<ReturnType<typeof gatewayScene>>
  const addresses = new Map<string, string>()

  beforeAll(async () => {
    const port = await freePort()
    scene = await gatewayScene({ xds: { host: '127.0.0.1', port }, brake: { hold: HOLD } })
    const bootstrap = readFileSync(exampleFile('grpc-bootstrap.json'), 'utf8')
    process.env['GRPC_XDS_BOOTSTRAP_CONFIG'] = bootstrap.replace('18000', String(port))
    register()
    for (const name of ['a', 'b', 'c']) addresses.set(name, await grpcBackend(name))
  })

  const join = (service: string, name: string, options: RegisterOptions = {}) =>
    scene.registry.register(service, { id: name, address: addresses.get(name)!, ...options })

  it('balances by weight', async () => {
    await join('weighted', 'a', { weight: 3 })
    await join('weighted', 'b', { weight: 1 })
    await join('weighted', 'c', { weight: 0 })
    const { tally, ask } = grpcClient('weighted')
    await ask()
    const { a = 0, b = 0, ...others } = await tally(400)
    expect(others).toEqual({})
    expect(a + b).toBe(400)
    // Three quarters, within six standard deviations.
    expect(Math.abs(a - 300)).toBeLessThan(52)
  }, 60_000)

  it('uses its own zone first, and another if nothing is left there', async () => {
    const near = await join('zoned', 'a', { zone: 'eu-1' })
    await join('zoned', 'b', { zone: 'us-1' })
    await join('zoned', 'c', { zone: 'us-1', weight: 100 })
    const { tally, ask } = grpcClient('zoned')
    expect(await tally(20)).toEqual({ a: 20 })
    await near.release()
    await expect.poll(ask, WAIT).not.toBe('a')
    const { a = 0, b = 0, c = 0, ...others } = await tally(100)
    expect(others).toEqual({})
    expect(a).toBe(0)
    expect(c).toBeGreaterThan(b)
  }, 60_000)

  it('stops calling an instance within 1 s of the end of its lease, without a failed call', async () => {
    const { registry, store } = scene
    await join('leased', 'a')
    const { key, value } = registry.entry('leased', 'b', { address: addresses.get('b')! })
    const granted = await store.grant({ holder: 'dead', ttl: 3000, claims: [{ key, value }] })
    if (granted.outcome === 'busy') throw new Error('busy')
    const heartbeat = setInterval(() => store.renew([granted.lease]).catch(() => {}), 500)
    const { ask, tally } = grpcClient('leased')
    await expect.poll(async () => Object.keys(await tally(10)).sort(), WAIT).toEqual(['a', 'b'])
    clearInterval(heartbeat)
    let endedAt = Number.POSITIVE_INFINITY
    store.watch({ prefix: key }, ({ type }) => {
      if (type === 'events') endedAt = performance.now()
    })
    let lastAt = 0
    const names = new Set<string>()
    while (performance.now() < endedAt + 1500) {
      const askedAt = performance.now()
      const name = await ask()
      if (name === 'b') lastAt = askedAt
      names.add(name)
    }
    expect([...names].sort()).toEqual(['a', 'b'])
    expect(lastAt - endedAt).toBeLessThan(1000)
  }, 60_000)

  it('keeps most instances when half of them vanish at once, until the brake lets go', async () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
    const backends = await Promise.all(names.map((name) => grpcBackend(`mass-${name}`)))
    const { lost, die } = await massFailure(scene, 'mass', backends)
    const { tally } = grpcClient('mass')
    const used = async () => Object.keys(await tally(40)).length
    await expect.poll(used, WAIT).toBe(8)
    die()
    // The first two leave as usual. The brake holds back the other two.
    await expect.poll(used, WAIT).toBe(6)
    for (;;) {
      const count = await used()
      if (performance.now() > lost[0]! + HOLD) break
      expect(count).toBe(6)
    }
    await expect.poll(used, WAIT).toBe(4)
    expect(lost).toHaveLength(4)
    expect(Object.keys(await tally(40)).sort()).toEqual(['mass-a', 'mass-b', 'mass-c', 'mass-d'])
  }, 60_000)

  it('fails calls at once if there is no instance, and works as soon as one registers', async () => {
    const { ask } = grpcClient('later')
    expect(await ask()).toBe(UNAVAILABLE)
    await join('later', 'a')
    await expect.poll(ask, WAIT).toBe('a')
  }, 60_000)

  it('keeps what it had while the server is down, and learns what changed when it is back', async () => {
    await join('kept', 'a')
    const { ask, tally } = grpcClient('kept')
    expect(await ask()).toBe('a')
    await scene.restart(async () => {
      expect(await tally(50)).toEqual({ a: 50 })
      await join('kept', 'b')
    })
    await expect.poll(ask, WAIT).toBe('b')
    expect(Object.keys(await tally(50)).sort()).toEqual(['a', 'b'])
  }, 60_000)
})
