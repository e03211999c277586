/**
 * Through a server that writes every change to the disk before it answers: ours on a file, Redis
 * with `appendfsync always`, etcd and ZooKeeper by default. Raft and Zab make the latter two ready
 * for more members, a cost that we and Redis do not have.
 */

import { startEtcd, startRedis, startZookeeper } from '../../../engines/start.js'
import { LOCKERS, REDIS_LIBRARIES } from '../../../lockers/index.js'
import { openDisk } from '../../../machine/disk.js'
import { startEcho, startServer } from '../../parts/remote/processes.js'
import { comparePairs, entrantsOn } from './pairs.js'

const FRAME = '[[1234567,"claim","0.1234567",["jobs/12/34"],0,"AbCdEfGhIjKlMnOpQrStUv-123456"]]'

const server = await startServer('file')
const [redis, etcd, zookeeper] = await Promise.all([startRedis(), startEtcd(), startZookeeper()])
const echo = await startEcho()
const disk = openDisk()
const [ours] = await entrantsOn(server, LOCKERS, ['our server'])
const peers = [
  ...(await entrantsOn(redis, LOCKERS, REDIS_LIBRARIES, { 'raw ioredis': { inFlight: 1.2 } })),
  ...(await entrantsOn(etcd, LOCKERS, ['etcd Lock service', 'etcd3'], {
    'etcd Lock service': { inFlight: 20 },
  })),
  ...(await entrantsOn(zookeeper, LOCKERS, ['ZooKeeper recipe'])),
]
const rows = await comparePairs({
  what: 'server on the disk',
  ours: ours!,
  peers,
  limit: {
    name: 'two round trips of an echo, each with an fdatasync',
    act: async () => {
      for (let time = 0; time < 2; time++) {
        await echo.send(FRAME)
        disk.sync()
      }
    },
  },
})
await Promise.all([ours!, ...peers].map(({ locker }) => locker.close()))
disk.end()
await Promise.all([server.end(), echo.end(), redis?.end(), etcd?.end(), zookeeper?.end()])
console.log(JSON.stringify(rows))
