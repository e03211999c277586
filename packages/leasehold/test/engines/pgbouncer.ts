import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type EngineSpec, findProgram } from './engine.ts'

/**
 * A pooler that assigns a PostgreSQL connection for one transaction at a time. So session state
 * (LISTEN, prepared statements, settings) does not survive a transaction.
 */
export function pgbouncer(postgresPort: number): EngineSpec {
  return {
    name: 'pgbouncer',
    program: findProgram('pgbouncer', ['/usr/sbin']),
    user: 'postgres',
    args: (folder, port) => {
      const file = join(folder, 'pgbouncer.ini')
      const settings = [
        '[databases]',
        `postgres = host=127.0.0.1 port=${postgresPort} user=postgres dbname=postgres`,
        '[pgbouncer]',
        'pool_mode = transaction',
        'listen_addr = 127.0.0.1',
        `listen_port = ${port}`,
        'unix_socket_dir =',
        'auth_type = any',
        'default_pool_size = 8',
        'max_client_conn = 200',
        'ignore_startup_parameters = extra_float_digits',
      ]
      writeFileSync(file, `${settings.join('\n')}\n`)
      return [file]
    },
    ready: /process up/,
  }
}
