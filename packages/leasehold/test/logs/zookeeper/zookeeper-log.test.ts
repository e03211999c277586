import { afterAll, beforeAll } from 'vitest'
import { zookeeperLog } from '../../../src/logs/zookeeper/index.ts'
import { describeWith, Engine, ZOOKEEPER } from '../../engines/index.ts'
import { logSuite } from '../suites/log-suite.ts'

/** A busy machine may take long to answer. */
const timeout = '20s'

describeWith(ZOOKEEPER, 'the ZooKeeper log', () => {
  let engine: Engine
  let logs = 0
  beforeAll(async () => {
    engine = await Engine.start(ZOOKEEPER)
  }, 60_000)
  afterAll(() => engine.stop())

  logSuite(async () => {
    const root = `/tests/log${++logs}`
    return { open: () => zookeeperLog({ servers: `127.0.0.1:${engine.port}`, root, timeout }) }
  })
})
