import { type EngineSpec, findProgram } from './engine.ts'

/** Redis as it must be set up to be relied upon: on the disk before it answers, and nothing evicted. */
export const REDIS: EngineSpec = {
  name: 'redis',
  program: findProgram('redis-server'),
  args: (folder, port) =>
    [
      ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder],
      ['--appendonly', 'yes', '--appendfsync', 'always', '--save', ''],
      ['--maxmemory-policy', 'noeviction'],
    ].flat(),
  ready: /ready to accept connections/i,
}
