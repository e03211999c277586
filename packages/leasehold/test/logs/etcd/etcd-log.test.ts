import { afterAll, beforeAll } from 'vitest'
import { etcdLog } from '../../../src/logs/etcd/index.ts'
import { describeWith, Engine, ETCD } from '../../engines/index.ts'
import { logSuite } from '../suites/log-suite.ts'

describeWith(ETCD, 'the etcd log', () => {
  let engine: Engine
  let logs = 0
  beforeAll(async () => {
    engine = await Engine.start(ETCD)
  }, 60_000)
  afterAll(() => engine.stop())

  logSuite(async () => {
    const prefix = `log${++logs}/`
    // A busy machine may take long to answer.
    return {
      open: () => etcdLog({ endpoints: `127.0.0.1:${engine.port}`, prefix, timeout: '20s' }),
    }
  })
})
