import { Redis } from 'ioredis'
import { redisLog } from '../../../src/logs/redis/index.ts'
import { describeWith, Engine, REDIS } from '../../engines/index.ts'
import { TcpProxy } from '../../faults/index.ts'
import { crowdSuite } from '../suites/crowd-suite.ts'

describeWith(REDIS, 'a crowd that locks the same keys on a Redis log', () => {
  crowdSuite({
    start: async () => {
      const engine = await Engine.start(REDIS)
      const line = await TcpProxy.to(engine.port)
      const client = new Redis({ port: engine.port, host: '127.0.0.1', retryStrategy: () => 50 })
      client.on('error', () => {})
      const log = await redisLog(client)
      return {
        ...{ members: [engine], lines: [line], log, argument: String(line.port) },
        module: new URL('./open-redis.ts', import.meta.url),
        stop: async () => {
          await log.close()
          client.disconnect()
          await line.close()
          await engine.stop()
        },
      }
    },
  })
})
