import * as grpc from '@grpc/grpc-js'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import type { Granted, LeaseStore } from '../../../src/port/index.ts'
import { type EtcdStoreOptions, etcdStore } from '../../../src/stores/etcd/index.ts'
import { describeWith, Engine, ETCD } from '../../engines/index.ts'
import { TcpProxy } from '../../faults/index.ts'

type Bidi = grpc.Client['makeBidiStreamRequest']

describeWith(ETCD, 'a renewal by etcd that members do not answer', () => {
  let engine: Engine
  let lines: readonly TcpProxy[]
  let store: LeaseStore
  beforeAll(async () => {
    engine = await Engine.start(ETCD)
    const each = [0, 1, 2].map(() => TcpProxy.to(engine.port))
    lines = await Promise.all(each)
  })
  afterEach(async () => {
    for (const line of lines) line.heal()
    await store.close()
  })
  afterAll(async () => {
    for (const line of lines) await line.close()
    await engine.stop()
  })

  /** A lease that was just renewed, so that there is a stream to the first member. */
  const begin = async (count: number, options: Partial<EtcdStoreOptions> = {}) => {
    const endpoints = lines.slice(0, count).map(({ port }) => `127.0.0.1:${port}`)
    store = etcdStore({ grpc, endpoints, ...options })
    const { lease } = (await store.grant({ holder: 'a', ttl: 600_000 })) as Granted
    await store.renew([lease])
    return lease
  }
  const renewal = async (lease: string) => {
    const started = performance.now()
    const outcome = await store.renew([lease]).then(
      ({ lost }) => (lost.length === 0 ? 'renewed' : 'lost'),
      (error) => error.code,
    )
    return { outcome, ms: performance.now() - started }
  }

  it.each([0, 700, 3000])(
    'is unknown after its timeout, asked %i ms after another',
    async (idle) => {
      const lease = await begin(1, { timeout: 2000, patience: 500 })
      await pause(idle)
      lines[0]!.cut()
      const { outcome, ms } = await renewal(lease)
      expect(outcome).toBe('unknown-outcome')
      expect(ms).toBeGreaterThan(1900)
      expect(ms).toBeLessThan(3000)
    },
    60_000,
  )

  it('is made by the member that is left, where two of three are silent', async () => {
    const lease = await begin(3)
    await pause(2500)
    lines[0]!.cut()
    lines[1]!.cut()
    const first = await renewal(lease)
    expect(first.outcome).toBe('renewed')
    expect(first.ms).toBeLessThan(5500)
    expect((await renewal(lease)).ms).toBeLessThan(1000)
  }, 60_000)

  it('keeps to its timeout as a whole, though what comes after the heartbeat is not answered', async () => {
    /** As soon as the heartbeat is answered, nothing is any more. */
    let cutsNext = false
    class Tapped extends grpc.Client {
      override makeBidiStreamRequest = ((...args: Parameters<Bidi>) => {
        const stream = super.makeBidiStreamRequest(...args)
        return stream.on('data', () => cutsNext && lines[0]!.cut())
      }) as Bidi
    }
    const lease = await begin(1, { timeout: 1500, grpc: { ...grpc, Client: Tapped } as never })
    lines[0]!.cut()
    const asked = renewal(lease)
    await pause(1000)
    cutsNext = true
    lines[0]!.heal()
    const { outcome, ms } = await asked
    expect(outcome).toBe('unknown-outcome')
    expect(ms).toBeLessThan(2200)
  }, 60_000)

  it('is answered again as soon as the member is', async () => {
    const lease = await begin(1, { timeout: 2000, patience: 500 })
    lines[0]!.cut()
    expect((await renewal(lease)).outcome).toBe('unknown-outcome')
    lines[0]!.heal()
    expect((await renewal(lease)).outcome).toBe('renewed')
  }, 60_000)
})

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
