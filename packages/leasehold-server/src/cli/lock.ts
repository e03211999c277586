import { Command } from 'commander'
import type { Duration } from 'leasehold/port'
import { acquired, commandOf } from './children.ts'
import { type ConnectionFlags, connecting, withLeasehold } from './connection.ts'
import { Exit, RUN_EXIT_HELP } from './exit-codes.ts'
import { checkPatience, holdWhileRunning, patienceOf } from './hold-while-running.ts'
import { integerOf } from './numbers.ts'

interface LockFlags extends ConnectionFlags {
  readonly shared?: boolean
  readonly limit?: string
  readonly wait?: string
  readonly ttl?: string
  readonly killAfter?: string
  readonly holder?: string
  readonly value?: string
}

export function lockCommand(commandLine: readonly string[]): Command {
  return connecting(new Command('lock'))
    .description('Runs a command while it holds one key, or several at once.')
    .usage('[options] <key...> -- <command...>')
    .argument('<key...>', 'what to lock')
    .option('--shared', 'beside others that are shared too, but not beside an exclusive one')
    .option('--limit <number>', 'with --shared: at most so many at a time')
    .option(
      '--wait <duration>',
      'how long to wait in line at most, 0 for not at all; as long as it takes if not given',
    )
    .option(
      '--ttl <duration>',
      'after how long without a sign of life another may have it (default: 30s)',
    )
    .option(
      '--kill-after <duration>',
      'how long the command has from TERM to KILL when the lease cannot be renewed; part of the ttl (default: a third of it, at most 5s)',
    )
    .option('--holder <name>', 'who holds it, for others to see')
    .option('--value <text>', 'a text for others to see')
    .addHelpText(
      'after',
      `
The command gets the fencing token as LEASEHOLD_TOKEN and the first key as LEASEHOLD_KEY. When the
lease is not renewed in time it gets TERM, and KILL before anybody else can hold the lock.
${RUN_EXIT_HELP}`,
    )
    .action((keys: string[], flags: LockFlags) => lock(keys, flags, commandOf(commandLine)))
}

async function lock(keys: string[], flags: LockFlags, line: readonly string[]): Promise<void> {
  const patience = patienceOf(flags.ttl, flags.killAfter)
  const options = {
    ...patience,
    ...(flags.shared && { mode: 'shared' as const }),
    ...(flags.limit !== undefined && { limit: integerOf('--limit', flags.limit, 1) }),
    wait: flags.wait === '0' ? 0 : (flags.wait as Duration | undefined),
    value: flags.value,
  }
  const ended = await withLeasehold(flags, flags.holder, async (leasehold, { store }) => {
    checkPatience(patience, flags.killAfter, store.guarantees)
    const held = await acquired((signal) => leasehold.lock(keys, { ...options, signal }))
    try {
      const { signal, lease, token } = held
      const command = { line, name: keys[0]! }
      return await holdWhileRunning(leasehold, { signal, lease, token }, patience, command)
    } finally {
      await held[Symbol.asyncDispose]()
    }
  })
  throw new Exit(ended.code, ended.lost && `the command was stopped: ${ended.lost}`)
}
