import { Command, Option } from 'commander'
import type { Leasehold, Term } from 'leasehold'
import type { Duration, LeaseId, LeaseStore } from 'leasehold/port'
import {
  type Connection,
  type ConnectionFlags,
  withConnectionOptions,
  withLeasehold,
} from '../connection.ts'
import { Exit, RUN_EXIT_HELP } from '../exit-codes.ts'
import { numberOf } from '../number-options.ts'
import { acquireOrExit, requireCommand } from './child-process.ts'
import { reportWait } from './report-wait.ts'
import { checkTimings, type Ended, runWhileHeld, timingsOf } from './run-while-held.ts'

interface ElectFlags extends ConnectionFlags {
  readonly wait?: string
  readonly ttl?: string
  readonly killAfter?: string
  readonly tied?: boolean
  readonly holder?: string
  /** The deprecated spelling of `holder`. */
  readonly candidate?: string
  readonly priority: string
  readonly preempt?: boolean
  readonly value?: string
  readonly again?: boolean
}

const TTL = '10s'

export function electCommand(commandLine: readonly string[]): Command {
  return withConnectionOptions(new Command('elect'))
    .description('Run a command while leading an election. One candidate leads at a time.')
    .usage('[options] <name> -- <command...>')
    .argument('<name>', 'the election')
    .option('--wait <duration>', 'the longest wait (default: no limit)')
    .option('--ttl <duration>', 'how long without a heartbeat until another may lead', TTL)
    .option(
      '--kill-after <duration>',
      'time between TERM and KILL when the command must end (default: a third of the ttl, at most 5s)',
    )
    .option(
      '--tied',
      'end the term as soon as this command dies, not when its ttl ends; needs a server',
    )
    .option('--holder <name>', 'the name of this candidate, shown to others')
    .addOption(new Option('--candidate <name>', 'deprecated: use --holder').hideHelp())
    .option('--priority <number>', 'candidates with a higher priority are preferred', '0')
    .option('--preempt', 'ask a leader with a lower priority to step down')
    .option('--value <string>', 'a string that followers read, such as an address')
    .option('--again', 'after losing a term, campaign again instead of exiting')
    .addHelpText(
      'after',
      `
LEASEHOLD_TOKEN contains the number of the term, which is a fencing token. When the term must end,
the command receives TERM, and then KILL before another candidate can lead.
${RUN_EXIT_HELP}`,
    )
    .action((name: string, flags: ElectFlags) => elect(name, flags, requireCommand(commandLine)))
}

async function elect(name: string, flags: ElectFlags, line: readonly string[]): Promise<void> {
  const timings = timingsOf(flags.ttl, flags.killAfter)
  const holder = flags.holder ?? flags.candidate
  const work = async (leasehold: Leasehold, { store }: Connection) => {
    checkTimings(timings, flags.killAfter, store.guarantees)
    const election = leasehold.election(name, {
      ...timings,
      drain: timings.grace,
      value: flags.value,
      priority: numberOf('--priority', flags.priority),
      preempt: flags.preempt,
      tied: flags.tied,
    })
    for (;;) {
      const wait = flags.wait as Duration | undefined
      const stopReport = reportWait(store, [election.key], leasehold.holder)
      const term = await acquireOrExit((signal) => election.campaign({ wait, signal })).finally(
        stopReport,
      )
      const lease = await leaseOf(store, election.key, term)
      const { signal, asked, number: token } = term
      const held = { signal, asked, lease, token }
      let ended: Ended | undefined
      await term
        .run(async () => {
          ended = await runWhileHeld(leasehold, held, timings, { line, name })
        })
        .catch((error) => {
          // `run` rejects if the work outlived its term. `ended` already has the outcome.
          if (ended === undefined) throw error
        })
      await term[Symbol.asyncDispose]()
      if (ended!.lost === undefined || !flags.again) return ended!
      process.stderr.write(`leasehold: the command was stopped: ${ended!.lost}\n`)
    }
  }
  const ended = await withLeasehold(flags, holder, work, true)
  throw new Exit(ended.code, ended.lost && `the command was stopped: ${ended.lost}`)
}

/** The lease of the term, to be notified of a break. */
async function leaseOf(store: LeaseStore, key: string, term: Term): Promise<LeaseId | undefined> {
  try {
    const { claims } = await store.read({ key, limit: 1 })
    return claims.find(({ token }) => token === term.number)?.lease
  } catch {
    // Without the right to read, the break is not announced; the term still ends.
    return undefined
  }
}
