import { readFileSync } from 'node:fs'
import { Command, InvalidArgumentError, Option } from 'commander'
import { fail, serve } from './serve.ts'
import { DEFAULT_HOST, DEFAULT_PORT } from './server.ts'

const { version } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
) as { version: string }

const program = new Command('leasehold')
  .description('Leases over the network: locks with fencing tokens, that end by themselves.')
  .version(version)

program
  .command('serve')
  .description('Serves a store of leases until it is told to stop (SIGTERM, SIGINT).')
  .option('--store <url>', "what to serve: 'file:<folder>' or 'memory:'", 'file:./data')
  .option('--host <address>', 'where to listen', DEFAULT_HOST)
  .option('--port <number>', 'where to listen; 0 for any free port', portOf, DEFAULT_PORT)
  .addOption(
    new Option('--log-level <level>', 'what to write to standard error')
      .choices(['silent', 'error', 'warn', 'info', 'debug'])
      .default('warn'),
  )
  .action(serve)

function portOf(text: string): number {
  const port = Number(text)
  if (/^\d+$/.test(text) && port <= 65_535) return port
  throw new InvalidArgumentError('It must be an integer from 0 to 65535.')
}

await program.parseAsync().catch(fail)
