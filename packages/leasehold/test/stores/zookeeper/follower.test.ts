import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Granted, LeaseStore, Notice } from '../../../src/port/index.ts'
import { zookeeperStore } from '../../../src/stores/zookeeper/index.ts'
import { multi, OPEN, type Op, type Session } from '../../../src/stores/zookeeper/wire/index.ts'
import { describeWith, Engine, ZOOKEEPER } from '../../engines/index.ts'
import { pause, rawSession, until } from './raw-session.ts'

describeWith(ZOOKEEPER, 'one who watches a prefix in ZooKeeper', () => {
  let engine: Engine
  let raw: Session
  let watcher: LeaseStore
  let writer: LeaseStore
  beforeAll(async () => {
    engine = await Engine.start(ZOOKEEPER)
    raw = rawSession(engine.port)
    watcher = await zookeeperStore({ servers: `127.0.0.1:${engine.port}` })
    writer = await zookeeperStore({ servers: `127.0.0.1:${engine.port}` })
  })
  afterAll(async () => {
    await watcher?.close()
    await writer?.close()
    await raw?.close('end')
    await engine?.stop()
  })

  const grant = async (key: string) =>
    ((await writer.grant({ holder: 'a', ttl: 60_000, claims: [{ key }] })) as Granted).token

  function watch(from?: number): Notice[] {
    const told: Notice[] = []
    watcher.watch({ prefix: '', from }, (notice) => told.push(notice))
    return told
  }

  /** An entry that is gone before it can be read, as one that was trimmed while we were slow. */
  async function loseAnEntry(): Promise<void> {
    const path = '/leasehold/j/olost'
    const made: Op = { do: 'create', path, data: Buffer.alloc(0), kind: 'persistent' }
    await raw.call(multi([made, { do: 'delete', path }], OPEN))
  }

  it('is told all after the revision it names, though others lost track before (I16)', async () => {
    const first = watch()
    await until(() => first.length > 0)
    const token = await grant('one')
    await grant('two')
    await grant('three')
    await until(() => keysOf(first).length === 3)
    for (let round = 0; round < 3; round++) {
      const last = round === 0 ? first : watch(token)
      await until(() => last[0]?.type === 'watching')
      await loseAnEntry()
      await until(() => last.at(-1)?.type === 'interrupted')
      await grant(`after-${round}`)
    }
    await pause(100)
    const again = watch(token)
    const wanted = ['two', 'three', 'after-0', 'after-1', 'after-2']
    await until(() => keysOf(again).length >= wanted.length)
    await grant('last')
    await until(() => keysOf(again).includes('last'))
    expect(keysOf(again)).toEqual([...wanted, 'last'])
    expect(again[0]).toEqual({ type: 'watching', revision: token })
  }, 60_000)

  it('is told all, though track is lost while it begins', async () => {
    for (let round = 0; round < 20; round++) {
      const told = watch()
      await Promise.all([loseAnEntry(), loseAnEntry(), pause(round % 5)])
      await until(() => told.length > 0)
      await grant(`begun-${round}`)
      // Told of it, or that it must watch again; but never left without a word.
      await until(
        () => keysOf(told).includes(`begun-${round}`) || told.at(-1)?.type === 'interrupted',
      )
    }
  }, 60_000)
})

function keysOf(notices: readonly Notice[]): string[] {
  return notices.flatMap((notice) =>
    notice.type === 'events' ? notice.events.map(({ key }) => key) : [],
  )
}
