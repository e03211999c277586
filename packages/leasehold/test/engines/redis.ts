import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type EngineSpec, findProgram } from './engine.ts'

/** Redis with safe settings: it writes to the disk before it answers, and evicts nothing. */
export const REDIS: EngineSpec = {
  name: 'redis',
  program: findProgram('redis-server'),
  args: (folder, port) =>
    [
      ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder],
      ['--appendonly', 'yes', '--appendfsync', 'always', '--save', ''],
      ['--maxmemory-policy', 'noeviction', '--repl-diskless-sync-delay', '0'],
    ].flat(),
  ready: /ready to accept connections/i,
}

/** A replica of another Redis. */
export function redisReplica(masterPort: number): EngineSpec {
  const args: EngineSpec['args'] = (folder, port) => [
    ...REDIS.args(folder, port),
    ...['--replicaof', '127.0.0.1', String(masterPort)],
  ]
  return { ...REDIS, name: 'redis-replica', args }
}

/** Sentinel: notices that a master is down and promotes a replica. The master's name is `main`. */
export function redisSentinel(masterPort: number): EngineSpec {
  const settings = [
    `sentinel monitor main 127.0.0.1 ${masterPort} 1`,
    'sentinel down-after-milliseconds main 500',
    'sentinel failover-timeout main 4000',
  ]
  return {
    name: 'redis-sentinel',
    program: findProgram('redis-server'),
    prepare: (folder) => writeFileSync(join(folder, 'sentinel.conf'), settings.join('\n')),
    args: (folder, port) => [
      ...[join(folder, 'sentinel.conf'), '--sentinel', '--port', String(port)],
      ...['--bind', '127.0.0.1', '--dir', folder],
    ],
    ready: /\+monitor master main/,
  }
}

/** A cluster of one server. Its slots must be assigned after the start. */
export const REDIS_CLUSTER: EngineSpec = {
  ...REDIS,
  name: 'redis-cluster',
  args: (folder, port) => [
    ...REDIS.args(folder, port),
    ...['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1'],
  ],
}
