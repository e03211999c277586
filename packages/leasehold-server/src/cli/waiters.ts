import { Command } from 'commander'
import { type ConnectionFlags, connecting, withStore } from './connection.ts'
import { EXIT_HELP } from './exit-codes.ts'
import { claimsTable } from './get.ts'
import { print } from './table.ts'

export function waitersCommand(): Command {
  return connecting(new Command('waiters'))
    .description('Shows who waits for a key, the next one first.')
    .argument('<key>')
    .option('--json', 'prints JSON')
    .addHelpText('after', EXIT_HELP)
    .action((key: string, flags: ConnectionFlags) =>
      withStore(flags, async ({ store }) => {
        const { claims, holders } = await store.read({ key })
        const waiting = claims.slice(holders)
        print(flags.json, waiting, () => claimsTable(waiting))
      }),
    )
}
