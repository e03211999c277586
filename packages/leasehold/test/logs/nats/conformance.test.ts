import { connect, type NatsConnection } from '@nats-io/transport-node'
import { afterAll, beforeAll } from 'vitest'
import { natsLog } from '../../../src/logs/nats/index.ts'
import { describeWith, Engine, NATS } from '../../engines/index.ts'
import { logSuite } from '../suites/log-suite.ts'

describeWith(NATS, 'the NATS log', () => {
  let engine: Engine
  let client: NatsConnection
  let names = 0

  beforeAll(async () => {
    engine = await Engine.start(NATS)
    client = await connect({ servers: `127.0.0.1:${engine.port}` })
  })

  afterAll(async () => {
    await client?.close()
    await engine?.stop()
  })

  logSuite(async () => {
    const name = `log${++names}`
    return { open: () => natsLog(client, { name }) }
  })
})
