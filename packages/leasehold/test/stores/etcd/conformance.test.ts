import * as grpc from '@grpc/grpc-js'
import { afterAll, beforeAll, describe, it } from 'vitest'
import type { Limits } from '../../../src/port/index.ts'
import { etcdStore } from '../../../src/stores/etcd/index.ts'
import { ETCD_LIMITS } from '../../../src/stores/etcd/options.ts'
import { conformance } from '../../../src/testing/index.ts'
import { describeWith, Engine, ETCD } from '../../engines/index.ts'

/** Small enough that every limit can be reached. */
const SMALL: Partial<Limits> = { claimsPerLease: 30, claimsPerKey: 40, historyPerKey: 4 }

describeWith(ETCD, 'the etcd store', () => {
  let engine: Engine
  let stores = 0
  beforeAll(async () => {
    engine = await Engine.start(ETCD)
  }, 60_000)
  afterAll(() => engine.stop())

  const open = async () => {
    const endpoints = [`127.0.0.1:${engine.port}`]
    return { store: etcdStore({ grpc, endpoints, prefix: `t${++stores}/`, limits: SMALL }) }
  }
  const limits = { ...ETCD_LIMITS, ...SMALL }
  describe('does what every store must do', { concurrent: true, timeout: 180_000 }, () => {
    for (const { name, skip, run } of conformance({ open, limits, shared: true })) {
      it.skipIf(skip)(name, run)
    }
  })
})
