import { Command } from 'commander'
import type { Claim } from 'leasehold/port'
import {
  type Connection,
  type ConnectionFlags,
  withConnectionOptions,
  withRecipes,
  withStore,
} from '../connection.ts'
import { EXIT, EXIT_HELP, Exit } from '../exit-codes.ts'
import { at, print, since, table, until } from '../output.ts'

export function getCommand(): Command {
  return withConnectionOptions(new Command('get'))
    .description('Show the holders of a key with their tokens and leases, and how many wait.')
    .argument('<key>', "a key, or 'election/<name>' for the leader of an election")
    .option('--json', 'print JSON')
    .addHelpText('after', `${EXIT_HELP}: nobody holds the key`)
    .action((key: string, flags: ConnectionFlags) =>
      withStore(flags, async (connection) => {
        const { claims, holders, count } = await connection.store.read({ key })
        const held = claims.slice(0, holders)
        if (held.length === 0) {
          const election = /^election\/(.+)$/.exec(key)?.[1]
          if (election !== undefined) return printLeader(connection, election, key, flags)
          throw new Exit(EXIT.notThere, `nobody holds "${key}"`)
        }
        print(flags.json, { key, holders: held, waiting: count - holders }, () => {
          const waiting = `\n${count - holders} waiting`
          return `${claimsTable(held)}${waiting}`
        })
      }),
    )
}

/** An election keeps its candidates in another key: its leader counts as the holder. */
async function printLeader(
  connection: Connection,
  election: string,
  key: string,
  flags: ConnectionFlags,
): Promise<void> {
  const candidates = await withRecipes(connection, flags, undefined, (leasehold) =>
    leasehold.election(election).candidates(),
  )
  const leader = candidates.find(({ leads }) => leads)
  if (leader === undefined) {
    throw new Exit(EXIT.notThere, `nobody leads the election "${election}"`)
  }
  const waiting = candidates.length - 1
  print(flags.json, { key, leader, waiting }, () => {
    const { candidate, token, holder, since: from, value } = leader
    const row = [candidate, token, holder, since(from), value]
    return `${table(['LEADER', 'TERM', 'HOLDER', 'LEADS', 'VALUE'], [row])}\n${waiting} waiting`
  })
}

export function claimsTable(claims: readonly Claim[]): string {
  return table(
    ['HOLDER', 'TOKEN', 'LEASE', 'MODE', 'CLAIMED', 'HELD', 'LEFT', 'VALUE'],
    claims.map(({ holder, token, lease, mode, claimedAt, heldSince, until: end, value }) => {
      const cut = value !== undefined && value.length > 60 ? `${value.slice(0, 59)}…` : value
      return [holder, token, lease, mode, at(claimedAt), since(heldSince), until(end), cut]
    }),
  )
}
