import { pino } from 'pino'
import { createServer } from './server.ts'
import { openStore } from './stores.ts'

export interface ServeOptions {
  readonly store: string
  readonly host: string
  readonly port: number
  readonly logLevel: string
}

/** Serves until the process is told to stop, by SIGTERM or SIGINT; a second one stops it at once. */
export async function serve(options: ServeOptions): Promise<void> {
  const logger = pino({ level: options.logLevel, name: 'leasehold' }, pino.destination(2))
  const { store, name, data } = await openStore(options.store)
  const { host, port } = options
  const server = await createServer({ store, host, port, logger }).catch(async (error) => {
    await store.close()
    throw explained(error, host, port)
  })
  const stop = async (signal: string) => {
    logger.info({ signal }, 'stopping')
    await server.close()
    await store.close()
    logger.info('stopped')
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.once(signal, () => void stop(signal).catch(fail))
  }
  process.stdout.write(`Leasehold listens on ${server.url}\n  store: ${name}\n  data:  ${data}\n`)
}

/** Says what went wrong, in one line, and ends. */
export function fail(error: unknown): never {
  process.stderr.write(`leasehold: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(1)
}

function explained(error: NodeJS.ErrnoException, host: string, port: number): Error {
  if (error.code === 'EADDRINUSE') {
    return new Error(`${host}:${port} is in use already: stop what listens there, or give --port`)
  }
  if (error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND') {
    return new Error(`${host} is no address of this machine: give another --host`)
  }
  return error
}
