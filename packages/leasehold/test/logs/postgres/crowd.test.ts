import pg from 'pg'
import { postgresLog } from '../../../src/logs/postgres/index.ts'
import { describeWith, Engine, POSTGRES, POSTGRES_CRASH, postgresUrl } from '../../engines/index.ts'
import { TcpProxy } from '../../faults/index.ts'
import { crowdSuite } from '../suites/crowd-suite.ts'

describeWith(POSTGRES, 'a crowd that locks the same keys on a PostgreSQL log', () => {
  crowdSuite({
    start: async () => {
      const engine = await Engine.start(POSTGRES)
      const line = await TcpProxy.to(engine.port)
      const pool = new pg.Pool({ connectionString: postgresUrl(engine.port), max: 4 })
      pool.on('error', () => {})
      const log = await postgresLog(pool)
      return {
        ...{ members: [engine], crash: POSTGRES_CRASH, lines: [line], log },
        module: new URL('./open-postgres.ts', import.meta.url),
        argument: postgresUrl(line.port),
        stop: async () => {
          await log.close()
          await pool.end()
          await line.close()
          await engine.stop()
        },
      }
    },
  })
})
