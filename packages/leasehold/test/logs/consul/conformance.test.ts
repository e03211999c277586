import { afterAll, beforeAll } from 'vitest'
import { consulLog } from '../../../src/logs/consul/index.ts'
import { CONSUL, describeWith, Engine } from '../../engines/index.ts'
import { logSuite } from '../suites/log-suite.ts'

/** A write takes Consul some milliseconds. */
const SLOW = { cases: /^(claims|waiting): /, runs: 3, snapshotBytes: 10_000 }

describeWith(CONSUL, 'the Consul log', () => {
  let engine: Engine
  let prefixes = 0

  beforeAll(async () => {
    engine = await Engine.start(CONSUL)
  }, 60_000)

  afterAll(() => engine?.stop())

  logSuite(async () => {
    const prefix = `log${++prefixes}/`
    const endpoints = `http://127.0.0.1:${engine.port}`
    return { open: () => consulLog({ endpoints, prefix, timeout: 20_000 }) }
  }, SLOW)
})
