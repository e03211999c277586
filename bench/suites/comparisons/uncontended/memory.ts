/**
 * Through a server that keeps its state in memory. PostgreSQL's advisory locks are in memory too.
 * The comparison is unfair to us: only simple-redis-mutex gives a fencing token, none has a queue,
 * and most do not keep the lock alive.
 */
import { startPostgres, startRedis } from '../../../engines/start.js'
import { LOCKERS, REDIS_LIBRARIES } from '../../../lockers/index.js'
import { startEcho, startServer } from '../../parts/remote/processes.js'
import { comparePairs, entrantsOn } from './pairs.js'

/** A claim, as sent. */
const FRAME = '[[1234567,"claim","0.1234567",["jobs/12/34"],0,"AbCdEfGhIjKlMnOpQrStUv-123456"]]'

const server = await startServer('memory')
const [redis, postgres] = await Promise.all([startRedis(false), startPostgres()])
const echo = await startEcho()
const [ours] = await entrantsOn(server, LOCKERS, ['our server'])
const peers = [
  ...(await entrantsOn(redis, LOCKERS, REDIS_LIBRARIES)),
  ...(await entrantsOn(postgres, LOCKERS, ['PostgreSQL advisory lock by hand', 'advisory-lock'])),
]
const rows = await comparePairs({
  what: 'server in memory',
  ours: ours!,
  peers,
  limit: {
    name: 'two round trips of an echo',
    act: async () => {
      await echo.send(FRAME)
      await echo.send(FRAME)
    },
  },
})
await Promise.all([ours!, ...peers].map(({ locker }) => locker.close()))
await Promise.all([server.end(), echo.end(), redis?.end(), postgres?.end()])
console.log(JSON.stringify(rows))
