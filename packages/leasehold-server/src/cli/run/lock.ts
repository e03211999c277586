import { Command } from 'commander'
import type { Leasehold } from 'leasehold'
import type { Duration } from 'leasehold/port'
import {
  type Connection,
  type ConnectionFlags,
  withConnectionOptions,
  withLeasehold,
} from '../connection.ts'
import { Exit, RUN_EXIT_HELP } from '../exit-codes.ts'
import { integerOf } from '../number-options.ts'
import { acquireOrExit, requireCommand } from './child-process.ts'
import { reportWait } from './report-wait.ts'
import { checkTimings, runWhileHeld, timingsOf } from './run-while-held.ts'

interface LockFlags extends ConnectionFlags {
  readonly shared?: boolean
  readonly limit?: string
  readonly wait?: string
  readonly ttl?: string
  readonly killAfter?: string
  readonly tied?: boolean
  readonly holder?: string
  readonly value?: string
}

export function lockCommand(commandLine: readonly string[]): Command {
  return withConnectionOptions(new Command('lock'))
    .description('Run a command while holding one key, or several keys at once.')
    .usage('[options] <key...> -- <command...>')
    .argument('<key...>', 'the keys to lock')
    .option('--shared', 'share the key with other shared holders; exclude exclusive ones')
    .option('--limit <number>', 'with --shared: the most holders at a time')
    .option('--wait <duration>', 'the longest wait in the queue; 0 for none (default: no limit)')
    .option(
      '--ttl <duration>',
      'how long without a heartbeat until another may hold the key (default: 30s)',
    )
    .option(
      '--kill-after <duration>',
      'time between TERM and KILL when the lease cannot be renewed; part of the ttl (default: a third of it, at most 5s)',
    )
    .option(
      '--tied',
      'free the key as soon as this command dies, not when its ttl ends; needs a server',
    )
    .option('--holder <name>', 'the name of the holder, shown to others')
    .option('--value <string>', 'a string shown to others')
    .addHelpText(
      'after',
      `
LEASEHOLD_TOKEN contains the fencing token and LEASEHOLD_KEY the first key. If the lease is not
renewed in time, the command receives TERM, and then KILL before another client can hold the lock.
${RUN_EXIT_HELP}`,
    )
    .action((keys: string[], flags: LockFlags) => lock(keys, flags, requireCommand(commandLine)))
}

async function lock(keys: string[], flags: LockFlags, line: readonly string[]): Promise<void> {
  const timings = timingsOf(flags.ttl, flags.killAfter)
  const options = {
    ...timings,
    ...(flags.shared && { mode: 'shared' as const }),
    ...(flags.limit !== undefined && { limit: integerOf('--limit', flags.limit, 1) }),
    wait: flags.wait === '0' ? 0 : (flags.wait as Duration | undefined),
    value: flags.value,
    tied: flags.tied,
  }
  const work = async (leasehold: Leasehold, { store }: Connection) => {
    checkTimings(timings, flags.killAfter, store.guarantees)
    const stopReport = reportWait(store, keys, leasehold.holder)
    const held = await acquireOrExit((signal) =>
      leasehold.lock(keys, { ...options, signal }),
    ).finally(stopReport)
    try {
      const { signal, lease, token } = held
      const command = { line, name: keys[0]! }
      return await runWhileHeld(leasehold, { signal, lease, token }, timings, command)
    } finally {
      await held[Symbol.asyncDispose]()
    }
  }
  const ended = await withLeasehold(flags, flags.holder, work, true)
  throw new Exit(ended.code, ended.lost && `the command was stopped: ${ended.lost}`)
}
