import { Command } from 'commander'
import type { Candidate, Leasehold } from 'leasehold'
import { type ConnectionFlags, withConnectionOptions, withLeasehold } from '../connection.ts'
import { EXIT, EXIT_HELP, Exit } from '../exit-codes.ts'
import { print, since, table } from '../output.ts'

export function electionsCommand(): Command {
  return withConnectionOptions(new Command('elections'))
    .description('List the elections with their leaders, or the candidates of one election.')
    .argument('[name]', 'the election')
    .option('--json', 'print JSON')
    .addHelpText('after', EXIT_HELP)
    .action((name: string | undefined, flags: ConnectionFlags) =>
      withLeasehold(flags, undefined, async (leasehold) => {
        if (name === undefined) {
          const elections = await electionsIn(leasehold)
          print(flags.json, elections, () => electionsTable(elections))
          return
        }
        const candidates = await leasehold.election(name).candidates()
        if (candidates.length === 0) {
          throw new Exit(EXIT.notThere, `the election "${name}" has no candidate`)
        }
        print(flags.json, candidates, () => candidatesTable(candidates))
      }),
    )
}

interface ElectionRow {
  readonly name: string
  readonly leader: Candidate | undefined
  readonly waiting: number
}

async function electionsIn(leasehold: Leasehold): Promise<ElectionRow[]> {
  const rows: ElectionRow[] = []
  for (const name of await leasehold.elections()) {
    const candidates = await leasehold.election(name).candidates()
    if (candidates.length === 0) continue
    const leader = candidates.find(({ leads }) => leads)
    rows.push({ name, leader, waiting: candidates.length - (leader === undefined ? 0 : 1) })
  }
  return rows
}

function electionsTable(elections: readonly ElectionRow[]): string {
  return table(
    ['ELECTION', 'LEADER', 'TERM', 'LEADS', 'WAITING', 'VALUE'],
    elections.map(({ name, leader, waiting }) => [
      ...[name, leader?.candidate, leader?.token, since(leader?.since), waiting, leader?.value],
    ]),
  )
}

function candidatesTable(candidates: readonly Candidate[]): string {
  return table(
    ['CANDIDATE', 'STATE', 'TOKEN', 'PRIORITY', 'HOLDER', 'VALUE'],
    candidates.map(({ candidate, leads, token, priority, holder, value }) => [
      ...[candidate, leads ? 'leads' : 'waits', token, priority, holder, value],
    ]),
  )
}
