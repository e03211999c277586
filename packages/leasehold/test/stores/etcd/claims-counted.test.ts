import * as grpc from '@grpc/grpc-js'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Granted, LeaseStore } from '../../../src/port/index.ts'
import { etcdStore } from '../../../src/stores/etcd/index.ts'
import { describeWith, Engine, ETCD } from '../../engines/index.ts'

describeWith(ETCD, 'the claims of a lease in etcd, of which so many are allowed', () => {
  let engine: Engine
  let own: LeaseStore
  let other: LeaseStore
  beforeAll(async () => {
    engine = await Engine.start(ETCD)
    const endpoints = `127.0.0.1:${engine.port}`
    own = etcdStore({ grpc, endpoints, timeout: '20s', limits: { claimsPerLease: 3 } })
    other = etcdStore({ grpc, endpoints, timeout: '20s' })
  })
  afterAll(async () => {
    await own.close()
    await other.close()
    await engine.stop()
  })

  it.each([true, false])(
    'do not count any more when another took them, watched: %s',
    async (watched) => {
      const { lease } = (await own.grant({ holder: 'a', ttl: 600_000 })) as Granted
      let taken = 0
      const hear = (type: string) => void (type === 'removed' && taken++)
      const watch = watched ? own.watch({ lease }, ({ type }) => hear(type)) : undefined
      const claim = (at: number) => own.claim({ lease, claims: [{ key: `${watched}/${at}` }] })
      for (let at = 0; at < 7; at++) {
        expect(await claim(at)).toMatchObject({ holds: true })
        await other.revoke({ target: { key: `${watched}/${at}` } })
        if (watched) await expect.poll(() => taken).toBe(at + 1)
      }
      for (let at = 10; at < 13; at++) await claim(at)
      await expect(claim(13)).rejects.toMatchObject({ code: 'limit-exceeded' })
      expect((await other.read({ lease })).claims.length).toBe(3)
      watch?.close()
    },
    60_000,
  )
})
