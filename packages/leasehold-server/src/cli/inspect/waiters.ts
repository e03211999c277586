import { Command } from 'commander'
import { type ConnectionFlags, withConnectionOptions, withStore } from '../connection.ts'
import { EXIT_HELP } from '../exit-codes.ts'
import { print } from '../output.ts'
import { claimsTable } from './get.ts'

export function waitersCommand(): Command {
  return withConnectionOptions(new Command('waiters'))
    .description('Show the waiters of a key in queue order.')
    .argument('<key>')
    .option('--json', 'print JSON')
    .addHelpText('after', EXIT_HELP)
    .action((key: string, flags: ConnectionFlags) =>
      withStore(flags, async ({ store }) => {
        const { claims, holders } = await store.read({ key })
        const waiting = claims.slice(holders)
        print(flags.json, waiting, () => claimsTable(waiting))
      }),
    )
}
