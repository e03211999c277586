import { execFileSync } from 'node:child_process'
import { dirname, join } from 'node:path'
import { type EngineSpec, findProgram, foldersIn } from './engine.ts'

const program = findProgram(
  'postgres',
  foldersIn('/usr/lib/postgresql').map((folder) => join(folder, 'bin')),
)

/** PostgreSQL with its default settings: a commit is on the disk before it is answered. */
export const POSTGRES: EngineSpec = {
  name: 'postgres',
  program,
  user: 'postgres',
  forks: true,
  prepare: (folder, user) => {
    const initdb = join(dirname(program!), 'initdb')
    const args = ['-D', join(folder, 'data'), '-U', 'postgres', '-A', 'trust', '-E', 'UTF8']
    execFileSync(initdb, [...args, '--no-locale', '--no-sync'], {
      ...user,
      cwd: folder,
      stdio: 'pipe',
    })
  },
  args: (folder, port) =>
    [
      ['-D', join(folder, 'data'), '-p', String(port)],
      ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='],
    ].flat(),
  ready: /database system is ready to accept connections/,
}

/** The same without waiting for the disk, for tests that are not about crashes. */
export const POSTGRES_UNSYNCED: EngineSpec = {
  ...POSTGRES,
  args: (folder, port) => [...POSTGRES.args(folder, port), '-c', 'fsync=off'],
}

/** PostgreSQL's crash: all processes end at once without cleanup, and the next start replays the WAL. */
export const POSTGRES_CRASH: NodeJS.Signals = 'SIGQUIT'

export function postgresUrl(port: number): string {
  return `postgres://postgres@127.0.0.1:${port}/postgres`
}
