import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  type Clock,
  type Granted,
  isLeaseholdError,
  type LeaseStore,
  systemClock,
  systemRandom,
} from '../../../src/port/index.ts'
import { connectPlainly } from '../../../src/stores/zookeeper/client.ts'
import { zookeeperStore } from '../../../src/stores/zookeeper/index.ts'
import { Sessions } from '../../../src/stores/zookeeper/sessions.ts'
import { describeWith, Engine, ZOOKEEPER } from '../../engines/index.ts'
import { TcpProxy } from '../../faults/index.ts'
import { pause, until } from './raw-session.ts'
import { tapped, xidOf } from './tapped-socket.ts'

describeWith(ZOOKEEPER, 'a ZooKeeper store that is closed at a bad moment', () => {
  let engine: Engine
  let line: TcpProxy
  let other: LeaseStore
  beforeAll(async () => {
    engine = await Engine.start(ZOOKEEPER)
    line = await TcpProxy.to(engine.port)
    other = await open()
  })
  afterAll(async () => {
    await other.close()
    await line.close()
    await engine?.stop()
  })

  const open = (more: object = {}) =>
    zookeeperStore({ servers: `127.0.0.1:${engine.port}`, root: '/closing', ...more })
  const hold = async (store: LeaseStore, key: string) =>
    (await store.grant({ holder: 'a', ttl: Infinity, claims: [{ key }] })) as Granted

  it('does not wait for ever for a server that has fallen silent', async () => {
    let held: (() => void)[] | undefined
    const clock: Clock = {
      now: () => systemClock.now(),
      asleep: () => systemClock.asleep(),
      timer: (time, run, keepAlive) => systemClock.timer(time, run, keepAlive),
      defer: (run) => (held ? void held.push(run) : systemClock.defer(run)),
    }
    const store = await open({ servers: `127.0.0.1:${line.port}`, clock })
    line.cut()
    // It is about to see whether a ping is due when it is closed.
    held = []
    await until(() => held!.length > 0)
    const closing = store.close()
    const waiting = held
    held = undefined
    for (const run of waiting) run()
    expect(await Promise.race([closing.then(() => 'closed'), pause(3000)])).toBe('closed')
    line.heal()
  }, 30_000)

  it('calls unknown what was sent by a connection that broke', async () => {
    const store = await open({ servers: `127.0.0.1:${line.port}`, timeout: '20s' })
    const { lease, token } = await hold(store, 'broken')
    line.loseReplies()
    const releasing = store.release({ lease, keys: ['broken'], token })
    const outcome = expect(releasing).rejects.toMatchObject({ outcome: 'unknown' })
    await until(async () => (await other.read({ key: 'broken' })).count === 0)
    await until(() => line.connections === 0)
    await store.close()
    await outcome
    line.heal()
  }, 30_000)

  it('opens no session any more', async () => {
    const servers = [{ host: '127.0.0.1', port: engine.port }]
    const common = { clock: systemClock, random: systemRandom, horizon: { zxid: 0 } }
    const settings = { servers, connect: connectPlainly, auth: undefined, patience: 5000 }
    const sessions = new Sessions({ ...settings, ...common, pingEvery: 125 }, 500, () => {})
    await sessions.close()
    const opening = sessions.for(1000).then(
      async (session) => session.close('end'),
      ({ code }) => code,
    )
    expect(await opening).toBe('closed')
  })

  /** A store that is closed as soon as it has heard so many answers. */
  const closedAfter = async (count: () => number): Promise<LeaseStore> => {
    const heard = (packet: Buffer) => {
      if (xidOf(packet) > 0 && count() === 0) void store.close()
    }
    const store: LeaseStore = await open({ connect: tapped({ heard }) })
    return store
  }

  type Scene = { store: LeaseStore; key: string; lease: string; token: number }
  const calls: Record<string, (scene: Scene) => Promise<unknown>> = {
    grant: ({ store, key }) =>
      store.grant({ holder: 'b', ttl: Infinity, claims: [{ key }], request: `grant-${key}` }),
    claim: ({ store, key, lease }) => store.claim({ lease, claims: [{ key }] }),
    release: ({ store, key, lease, token }) => store.release({ lease, keys: [key], token }),
    update: ({ store, key, lease, token }) => store.update({ lease, key, token, value: 'new' }),
    'revoke of a lease': ({ store, lease }) => store.revoke({ target: { lease }, by: 'b' }),
    'revoke of a key': ({ store, key }) => store.revoke({ target: { key } }),
  }

  it.each(Object.keys(calls))(
    'never calls a %s refused that has changed something',
    async (name) => {
      for (let steps = 1; steps <= 8; steps++) {
        const key = `${name.replaceAll(' ', '-')}-${steps}`
        const { lease, token } = await hold(other, key)
        const state = async () => {
          const { claims } = await other.read({ key })
          const read = await other.read({ lease })
          const each = claims.map((claim) => [claim.token, claim.value])
          return JSON.stringify({ each, claims: read.lease?.claims, end: read.end })
        }
        const before = await state()
        let left = Infinity
        const store = await closedAfter(() => --left)
        await store.read({ lease })
        left = steps
        const error = await calls[name]!({ store, key, lease, token }).then(
          () => undefined,
          (error) => error,
        )
        await store.close()
        if (error !== undefined) expect(isLeaseholdError(error)).toBe(true)
        const isSame = (await state()) === before
        if (error?.outcome === 'refused') expect([name, steps, isSame]).toEqual([name, steps, true])
      }
    },
    60_000,
  )

  it('never calls a revoke refused that has ended a part of what is too large for one step', async () => {
    for (let steps = 15; steps <= 24; steps += 3) {
      const { lease } = (await other.grant({ holder: 'a', ttl: Infinity })) as Granted
      for (let part = 0; part < 4; part++) {
        const name = (at: number) => `${steps}-${part}-${at}-`.padEnd(500, 'x')
        const claims = Array.from({ length: 250 }, (_, at) => ({ key: name(at) }))
        await other.claim({ lease, claims })
      }
      let left = Infinity
      const store = await closedAfter(() => --left)
      left = steps
      const outcome = await store.revoke({ target: { lease } }).then(
        () => 'done',
        (error) => error.outcome,
      )
      await store.close()
      const { lease: now } = await other.read({ lease })
      if (outcome === 'refused') expect([steps, now?.claims]).toEqual([steps, 1000])
    }
  }, 60_000)
})
