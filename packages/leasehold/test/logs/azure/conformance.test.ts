import { afterAll, beforeAll } from 'vitest'
import { azureLog } from '../../../src/logs/azure/index.ts'
import { AZURITE, AZURITE_KEY, azuriteUrl, describeWith, Engine } from '../../engines/index.ts'
import { logSuite } from '../suites/log-suite.ts'

/** Azurite takes about 10 ms for each request. */
const SLOW = { cases: /^(claims|waiting): /, runs: 3, snapshotBytes: 10_000 }

describeWith(AZURITE, 'the Azure log', () => {
  let engine: Engine
  let prefixes = 0

  beforeAll(async () => {
    engine = await Engine.start(AZURITE)
  }, 60_000)

  afterAll(() => engine?.stop())

  logSuite(async () => {
    const prefix = `log${++prefixes}`
    // Few blocks in a blob, so that one follows the other.
    const options = { key: AZURITE_KEY, prefix, blocks: 100, poll: 20, timeout: 20_000 }
    return { open: () => azureLog(azuriteUrl(engine.port, 'logs'), options) }
  }, SLOW)
})
