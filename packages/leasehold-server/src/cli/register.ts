import { Command } from 'commander'
import type { Duration } from 'leasehold/port'
import { Child, commandOf } from './children.ts'
import { type ConnectionFlags, connecting, withLeasehold } from './connection.ts'
import { Exit, RUN_EXIT, RUN_EXIT_HELP } from './exit-codes.ts'
import { numberOf } from './numbers.ts'

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
  readonly ttl?: string
}

export function registerCommand(commandLine: readonly string[]): Command {
  return connecting(new Command('register'))
    .description('Runs a command while it is registered as an instance of a service.')
    .usage('[options] <service> -- <command...>')
    .argument('<service>', 'the service')
    .option('--id <id>', 'unique within the service; a random one if not given')
    .option('--address <address>', 'where it is reached')
    .option('--capability <name...>', 'what it can do', [])
    .option('--tag <name...>', 'tags', [])
    .option('--meta <name=value...>', 'anything else that others may want to know', [])
    .option('--weight <number>', 'how much of the work it should get, compared with others')
    .option('--zone <name>', 'where it runs')
    .option('--check-http <url>', 'is to be checked by fetching this')
    .option('--check-tcp <address>', 'is to be checked by connecting to this')
    .option('--ttl <duration>', 'how long it is seen after it died', '15s')
    .addHelpText(
      'after',
      `
The command goes on when the server cannot be reached: it is registered again when it can. It ends
when the registration is taken away by force.
${RUN_EXIT_HELP}`,
    )
    .action((name: string, flags: RegisterFlags) => register(name, flags, commandOf(commandLine)))
}

async function register(
  service: string,
  flags: RegisterFlags,
  line: readonly string[],
): Promise<void> {
  const { id, address, zone, capability, tag, meta, weight } = flags
  const { checkHttp, checkTcp } = flags
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
  }
  const ended = await withLeasehold(flags, undefined, async (leasehold) => {
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
  })
  if (ended.why === undefined) throw new Exit(ended.code)
  throw new Exit(RUN_EXIT.lost, `the command was told to end: ${ended.why}`)
}

function pairOf(text: string): [string, string] {
  const at = text.indexOf('=')
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)]
  throw new Exit(RUN_EXIT.failed, `--meta "${text}" has no equals sign: write name=value`)
}
