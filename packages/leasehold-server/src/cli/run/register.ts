import { Command } from 'commander'
import type { Leasehold } from 'leasehold'
import type { Duration } from 'leasehold/port'
import { type ConnectionFlags, withConnectionOptions, withLeasehold } from '../connection.ts'
import { Exit, RUN_EXIT, RUN_EXIT_HELP } from '../exit-codes.ts'
import { numberOf } from '../number-options.ts'
import { Child, requireCommand } from './child-process.ts'

interface RegisterFlags extends ConnectionFlags {
  readonly id?: string
  readonly address?: string
  readonly capability: string[]
  readonly tag: string[]
  readonly meta: string[]
  readonly weight?: string
  readonly zone?: string
  readonly checkHttp?: string
  readonly checkTcp?: string
  readonly holder?: string
  readonly ttl?: string
  readonly tied?: boolean
}

export function registerCommand(commandLine: readonly string[]): Command {
  return withConnectionOptions(new Command('register'))
    .description('Run a command while it is registered as an instance of a service.')
    .usage('[options] <service> -- <command...>')
    .argument('<service>', 'the service')
    .option('--id <id>', 'unique within the service (default: random)')
    .option('--address <address>', 'the address of the instance')
    .option('--capability <name...>', 'capabilities of the instance', [])
    .option('--tag <name...>', 'tags', [])
    .option('--meta <name=value...>', 'other metadata', [])
    .option('--weight <number>', 'its share of the work, relative to other instances')
    .option('--zone <name>', 'the zone it runs in')
    .option(
      '--check-http <url>',
      'check its health by fetching this URL, or this path at its address',
    )
    .option('--check-tcp <address>', 'check its health by connecting to this host:port')
    .option('--holder <name>', 'the name of the holder, shown to others')
    .option('--ttl <duration>', 'how long it stays registered after it dies', '15s')
    .option(
      '--tied',
      'remove it as soon as this command dies, not when its ttl ends; needs a server',
    )
    .addHelpText(
      'after',
      `
If the server cannot be reached, the command keeps running and is registered again later. If the
registration is revoked, the command is stopped.
${RUN_EXIT_HELP}`,
    )
    .action((name: string, flags: RegisterFlags) =>
      register(name, flags, requireCommand(commandLine)),
    )
}

async function register(
  service: string,
  flags: RegisterFlags,
  line: readonly string[],
): Promise<void> {
  const { id, address, zone, capability, tag, meta, weight } = flags
  const { checkHttp, checkTcp } = flags
  if (checkHttp !== undefined && checkTcp !== undefined) {
    throw new Exit(RUN_EXIT.failed, 'an instance has one check: use --check-http or --check-tcp')
  }
  const options = {
    id,
    address,
    zone,
    capabilities: capability,
    tags: tag,
    metadata: Object.fromEntries(meta.map(pairOf)),
    ...(weight !== undefined && { weight: numberOf('--weight', weight) }),
    ...(checkHttp !== undefined && { check: { http: checkHttp } }),
    ...(checkTcp !== undefined && { check: { tcp: checkTcp } }),
    ttl: flags.ttl as Duration | undefined,
    tied: flags.tied,
  }
  const work = async (leasehold: Leasehold) => {
    const registration = await leasehold.registry.register(service, options)
    const child = new Child(line, {
      LEASEHOLD_SERVICE: service,
      LEASEHOLD_INSTANCE: registration.id,
      LEASEHOLD_TOKEN: String(registration.token ?? ''),
    })
    let why: string | undefined
    registration.signal.addEventListener('abort', () => {
      const { reason } = registration.signal
      why = reason instanceof Error ? reason.message : String(reason)
      child.signal('SIGTERM')
    })
    try {
      return { code: await child.exited, why }
    } finally {
      await registration[Symbol.asyncDispose]()
    }
  }
  const ended = await withLeasehold(flags, flags.holder, work, true)
  if (ended.why === undefined) throw new Exit(ended.code)
  throw new Exit(RUN_EXIT.lost, `the command was stopped: ${ended.why}`)
}

function pairOf(given: string): [string, string] {
  const at = given.indexOf('=')
  if (at > 0) return [given.slice(0, at), given.slice(at + 1)]
  throw new Exit(RUN_EXIT.failed, `--meta is "${given}": use name=value`)
}
