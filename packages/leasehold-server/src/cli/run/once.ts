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
import { acquireOrExit, requireCommand } from './child-process.ts'
import { checkTimings, runWhileHeld, timingsOf } from './run-while-held.ts'

interface OnceFlags extends ConnectionFlags {
  readonly keep?: string
  readonly wait?: string
  readonly ttl?: string
  readonly killAfter?: string
  readonly holder?: string
  readonly forget?: boolean
}

export function onceCommand(commandLine: readonly string[]): Command {
  return withConnectionOptions(new Command('once'))
    .description('Run a command once in a fleet, and remember that it is done.')
    .usage('[options] <name> -- <command...>')
    .argument('<name>', 'what is done once, such as report/2026-11')
    .option('--keep <duration>', 'how long it is remembered; then it may run again (default: 30d)')
    .option('--wait <duration>', 'the longest wait for one that runs now (default: no limit)')
    .option('--ttl <duration>', 'how long after the death of this process another may run it')
    .option('--kill-after <duration>', 'time between TERM and KILL when the lease is lost')
    .option('--holder <name>', 'the name of this process, shown to others')
    .option('--forget', 'forget that it is done, and run nothing')
    .addHelpText(
      'after',
      `
A command that exits with 0 is done: from then on this exits with 0 at once, wherever it is called.
Any other end is not remembered, and the next call runs the command again. LEASEHOLD_TOKEN contains
the fencing token.
${RUN_EXIT_HELP}`,
    )
    .action((name: string, flags: OnceFlags) =>
      flags.forget ? forget(name, flags) : once(name, flags, requireCommand(commandLine)),
    )
}

async function once(name: string, flags: OnceFlags, line: readonly string[]): Promise<void> {
  const timings = timingsOf(flags.ttl, flags.killAfter)
  const run = async (leasehold: Leasehold, { store }: Connection) => {
    checkTimings(timings, flags.killAfter, store.guarantees)
    const options = {
      ...timings,
      wait: flags.wait === '0' ? 0 : (flags.wait as Duration | undefined),
      keep: flags.keep as Duration | undefined,
    }
    const { ran, by, at } = await acquireOrExit((signal) =>
      leasehold.once(
        name,
        async (lock) => {
          const { signal: lost, lease, token } = lock
          const held = { signal: lost, lease, token }
          const ended = await runWhileHeld(leasehold, held, timings, { line, name })
          if (ended.code === 0) return
          throw new Exit(ended.code, ended.lost && `the command was stopped: ${ended.lost}`)
        },
        { ...options, signal },
      ),
    )
    if (ran) return
    process.stderr.write(
      `leasehold: ${name} was done by ${by}, ${new Date(at).toISOString()}; leasehold once ${name} --forget lets it run again\n`,
    )
  }
  await withLeasehold(flags, flags.holder, run, true)
}

async function forget(name: string, flags: OnceFlags): Promise<void> {
  const wasDone = await withLeasehold(flags, flags.holder, (leasehold) =>
    leasehold.forgetOnce(name),
  )
  process.stderr.write(
    `leasehold: ${name} ${wasDone ? 'is forgotten, and can run again' : 'was not done'}\n`,
  )
}
