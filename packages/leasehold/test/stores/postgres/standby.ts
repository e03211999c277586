import { execFileSync } from 'node:child_process'
import { appendFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { EngineSpec } from '../../engines/index.ts'
import { POSTGRES } from '../../engines/index.ts'

/**
 * A standby of the server at this port. It receives the changes with a delay, through a proxy at
 * another port.
 */
export function standbyOf(primaryPort: number, linePort: number): EngineSpec {
  return {
    ...POSTGRES,
    name: 'postgres-standby',
    prepare: (folder, user) => {
      const program = join(dirname(POSTGRES.program!), 'pg_basebackup')
      const from = ['-h', '127.0.0.1', '-p', String(primaryPort), '-U', 'postgres']
      execFileSync(
        program,
        [...from, '-D', join(folder, 'data'), '-R', '-X', 'stream', '-c', 'fast', '--no-sync'],
        { ...user, cwd: folder, stdio: 'pipe' },
      )
      const line = `primary_conninfo = 'host=127.0.0.1 port=${linePort} user=postgres'\n`
      appendFileSync(join(folder, 'data', 'postgresql.auto.conf'), line)
    },
    ready: /database system is ready to accept read-only connections/,
  }
}
