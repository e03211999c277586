import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Granted, LeaseStore } from '../../../src/port/index.ts'
import { zookeeperStore } from '../../../src/stores/zookeeper/index.ts'
import { describeWith, Ensemble, ZOOKEEPER } from '../../engines/index.ts'
import { TcpProxy } from '../../faults/index.ts'
import { pause, until } from './raw-session.ts'
import { tapped } from './tapped-socket.ts'

/** The tests' ensembles grant no session that is longer than this. */
const LONGEST_SESSION_MS = 5000
/** What a store asks for its own session; where that stands in a greeting, and how long this is. */
const MAIN_MS = 10_000
const WANTED_AT = 12
const GREETING_BYTES = 45

describeWith(ZOOKEEPER, 'several stores on one ZooKeeper', () => {
  let ensemble: Ensemble
  const stores: LeaseStore[] = []
  beforeAll(async () => {
    ensemble = await Ensemble.start()
  })
  afterAll(async () => {
    for (const store of stores) await store.close()
    await ensemble?.stop()
  })

  const open = async (root: string, port: number, more: object = {}) => {
    const servers = `127.0.0.1:${port}`
    const store = await zookeeperStore({ servers, root, timeout: '20s', ...more })
    stores.push(store)
    return store
  }
  const onEach = (root: string) => Promise.all(ensemble.members.map(({ port }) => open(root, port)))
  const hold = async (store: LeaseStore, key: string, ttl = 600_000) =>
    (await store.grant({ holder: 'a', ttl, claims: [{ key }] })) as Granted

  it('remove a claim that another has just made, also where their server lags behind', async () => {
    const each = await onEach('/revoked')
    for (let round = 0; round < 60; round++) {
      const [own, other] = [each[round % 3]!, each[(round + 1) % 3]!]
      const key = `key-${round}`
      await hold(own, key)
      const target = round % 2 === 0 ? { key } : { prefix: key }
      expect([round, (await other.revoke({ target })).claims]).toEqual([round, 1])
    }
  }, 60_000)

  it('leave a lease to whoever renewed it last, though one of them was cut off', async () => {
    const line = await TcpProxy.to(ensemble.members[0]!.port)
    let [isHealed, isBack] = [false, false]
    // After the cut it gets the session of its lease back before its own.
    const leaves = ([packet]: readonly Buffer[]) => {
      if (!isHealed || packet!.length !== GREETING_BYTES) return undefined
      const isMain = packet!.readInt32BE(WANTED_AT) === MAIN_MS
      isBack ||= !isMain
      return isMain ? pause(isBack ? 150 : 5000) : undefined
    }
    const former = await open('/left', line.port, { connect: tapped({ leaves }) })
    const keeper = await open('/left', ensemble.members[1]!.port)
    const ttl = LONGEST_SESSION_MS + 5000
    const granted = performance.now()
    const { lease } = await hold(former, 'key', ttl)
    line.reset()
    await until(async () => {
      await keeper.renew([lease])
      return performance.now() - granted > LONGEST_SESSION_MS + 1500
    })
    const renewed = performance.now()
    isHealed = true
    line.heal()
    await pause(granted + ttl + 1500 - performance.now())
    expect(performance.now() - renewed).toBeLessThan(ttl)
    expect((await keeper.read({ lease })).end).toBeUndefined()
    await line.close()
  }, 60_000)
})
