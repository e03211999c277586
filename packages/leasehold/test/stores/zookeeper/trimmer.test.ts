import { afterAll, beforeAll, expect, it } from 'vitest'
import type { LeaseStore } from '../../../src/port/index.ts'
import { zookeeperStore } from '../../../src/stores/zookeeper/index.ts'
import {
  getChildren,
  getData,
  multi,
  OPEN,
  type Op,
  type Session,
} from '../../../src/stores/zookeeper/wire/index.ts'
import { describeWith, Engine, ZOOKEEPER } from '../../engines/index.ts'
import { TcpProxy } from '../../faults/index.ts'
import { pause, rawSession, until } from './raw-session.ts'

/** The journal is looked after when it is longer than this by a batch, which is 128. */
const KEPT = 64

describeWith(ZOOKEEPER, 'the journal in ZooKeeper', () => {
  let engine: Engine
  let raw: Session
  beforeAll(async () => {
    engine = await Engine.start(ZOOKEEPER)
    raw = rawSession(engine.port)
  })
  afterAll(async () => {
    await raw?.close('end')
    await engine?.stop()
  })

  const open = (root: string, port = engine.port) =>
    zookeeperStore({ servers: `127.0.0.1:${port}`, root, limits: { events: KEPT } })

  const count = async (path: string) => (await raw.call(getChildren(path))).value.length

  async function grantMany(store: LeaseStore, many: number): Promise<void> {
    for (let done = 0; done < many; done += 32) {
      await Promise.all(
        Array.from({ length: 32 }, () =>
          store.grant({ holder: 'a', ttl: Number.POSITIVE_INFINITY }),
        ),
      )
    }
  }

  /** An entry that has ended so many leases, with how they ended. */
  async function writeEnd(root: string, name: string, leases: number): Promise<void> {
    const ended = Array.from({ length: leases }, (_, at) => `${name}x${at}`)
    const made = (path: string, record: object): Op => {
      return { do: 'create', path, data: Buffer.from(JSON.stringify(record)), kind: 'persistent' }
    }
    const ends = ended.map((id) => made(`${root}/e/${id}`, { reason: 'expired' }))
    while (ends.length > 1000) await raw.call(multi(ends.splice(0, 1000), OPEN))
    const entry = { answer: { revision: -1 }, events: [], ended }
    await raw.call(multi([made(`${root}/j/o${name}`, entry), ...ends], OPEN))
  }

  it.each([
    ['together ended more leases than one transaction can forget', '/together', 200, 100],
    ['each ended more leases than one transaction can forget', '/each', 4, 14_000],
  ])(
    'is kept short, though entries in it %s',
    async (_, root, entries, leases) => {
      const store = await open(root)
      for (let at = 0; at < entries; at++) await writeEnd(root, `abcdefghijkl-${at}`, leases)
      await grantMany(store, 768)
      await until(async () => (await count(`${root}/j`)) < KEPT + 128 + 256)
      expect(await count(`${root}/e`)).toBe(0)
      await store.close()
    },
    120_000,
  )

  it('is left to another who keeps it short', async () => {
    const line = await TcpProxy.to(engine.port)
    const store = await open('/left', line.port)
    await grantMany(store, 768)
    const path = '/left/t'
    const owner = () => raw.call(getData(path, false)).then(({ value }) => value.stat.czxid)
    await until(() =>
      owner().then(
        () => true,
        () => false,
      ),
    )
    // As if the session of the one had run out, and another had taken its place.
    const nothing = Buffer.alloc(0)
    await raw.call(
      multi(
        [
          { do: 'delete', path },
          { do: 'create', path, data: nothing, kind: 'ephemeral' },
        ],
        OPEN,
      ),
    )
    const before = await owner()
    line.reset()
    line.heal()
    await store.read({ key: 'key' })
    await pause(300)
    expect(await owner()).toBe(before)
    await store.close()
    await line.close()
  }, 60_000)
})
