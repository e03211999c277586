import { Command } from 'commander'
import type { Claim } from 'leasehold/port'
import { type ConnectionFlags, withConnectionOptions, withStore } from '../connection.ts'
import { EXIT, EXIT_HELP, Exit } from '../exit-codes.ts'
import { at, print, since, table, until } from '../output.ts'

export function getCommand(): Command {
  return withConnectionOptions(new Command('get'))
    .description('Show the holders of a key with their tokens and leases, and how many wait.')
    .argument('<key>')
    .option('--json', 'print JSON')
    .addHelpText('after', `${EXIT_HELP}: nobody holds the key`)
    .action((key: string, flags: ConnectionFlags) =>
      withStore(flags, async ({ store }) => {
        const { claims, holders, count } = await store.read({ key })
        const held = claims.slice(0, holders)
        if (held.length === 0) throw new Exit(EXIT.notThere, `nobody holds "${key}"`)
        print(flags.json, { key, holders: held, waiting: count - holders }, () => {
          const waiting = `\n${count - holders} waiting`
          return `${claimsTable(held)}${waiting}`
        })
      }),
    )
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
