import { Command } from 'commander'
import type { Term } from 'leasehold'
import type { Duration, LeaseId, LeaseStore } from 'leasehold/port'
import { acquired, commandOf } from './children.ts'
import { type ConnectionFlags, connecting, withLeasehold } from './connection.ts'
import { Exit, RUN_EXIT_HELP } from './exit-codes.ts'
import { checkPatience, type Ended, holdWhileRunning, patienceOf } from './hold-while-running.ts'
import { numberOf } from './numbers.ts'

interface ElectFlags extends ConnectionFlags {
  readonly wait?: string
  readonly ttl?: string
  readonly killAfter?: string
  readonly candidate?: string
  readonly priority: string
  readonly preempt?: boolean
  readonly value?: string
  readonly again?: boolean
}

const TTL = '10s'

export function electCommand(commandLine: readonly string[]): Command {
  return connecting(new Command('elect'))
    .description('Runs a command while it leads: of all who stand for a name, one at a time.')
    .usage('[options] <name> -- <command...>')
    .argument('<name>', 'the election')
    .option('--wait <duration>', 'how long to wait at most; as long as it takes if not given')
    .option('--ttl <duration>', 'after how long without a sign of life another may lead', TTL)
    .option(
      '--kill-after <duration>',
      'how long the command has from TERM to KILL when it must end (default: a third of the ttl, at most 5s)',
    )
    .option('--candidate <name>', 'who this is, for others to see')
    .option('--priority <number>', 'the higher is preferred', '0')
    .option('--preempt', 'asks a leader of a lower priority to step down')
    .option('--value <text>', 'a text that followers read, such as an address')
    .option('--again', 'stands for election again when it has lost its term, instead of ending')
    .addHelpText(
      'after',
      `
The command gets the number of its term, which is a fencing token, as LEASEHOLD_TOKEN. When the term
must end it gets TERM, and KILL before anybody else can lead.
${RUN_EXIT_HELP}`,
    )
    .action((name: string, flags: ElectFlags) => elect(name, flags, commandOf(commandLine)))
}

async function elect(name: string, flags: ElectFlags, line: readonly string[]): Promise<void> {
  const patience = patienceOf(flags.ttl, flags.killAfter)
  const ended = await withLeasehold(flags, flags.candidate, async (leasehold, { store }) => {
    checkPatience(patience, flags.killAfter, store.guarantees)
    const election = leasehold.election(name, {
      ...patience,
      drain: patience.grace,
      value: flags.value,
      priority: numberOf('--priority', flags.priority),
      preempt: flags.preempt,
    })
    for (;;) {
      const wait = flags.wait as Duration | undefined
      const term = await acquired((signal) => election.campaign({ wait, signal }))
      const lease = await leaseOf(store, election.key, term)
      const { signal, asked, number: token } = term
      const held = { signal, asked, lease, token }
      let ended: Ended | undefined
      await term
        .run(async () => {
          ended = await holdWhileRunning(leasehold, held, patience, { line, name })
        })
        .catch((error) => {
          // Work that outlived its term is reported as such: what became of it is known here.
          if (ended === undefined) throw error
        })
      await term[Symbol.asyncDispose]()
      if (ended!.lost === undefined || !flags.again) return ended!
      process.stderr.write(`leasehold: the command was stopped: ${ended!.lost}\n`)
    }
  })
  throw new Exit(ended.code, ended.lost && `the command was stopped: ${ended.lost}`)
}

/** The lease under the term, for the news of a break. */
async function leaseOf(store: LeaseStore, key: string, term: Term): Promise<LeaseId | undefined> {
  try {
    const { claims } = await store.read({ key, limit: 1 })
    return claims.find(({ token }) => token === term.number)?.lease
  } catch {
    // Without the right to read there is no such news: the term ends all the same.
    return undefined
  }
}
