import { Command } from 'commander'
import { type ConnectionFlags, withConnectionOptions, withStore } from '../connection.ts'
import { EXIT_HELP } from '../exit-codes.ts'
import { at, print, span, table } from '../output.ts'

export function historyCommand(): Command {
  return withConnectionOptions(new Command('history'))
    .description('Show the previous holders of a key, latest first, and how each hold ended.')
    .argument('<key>')
    .option('--json', 'print JSON')
    .addHelpText('after', EXIT_HELP)
    .action((key: string, flags: ConnectionFlags) =>
      withStore(flags, async ({ store }) => {
        const { tenures } = await store.read({ history: key })
        print(flags.json, tenures, () =>
          table(
            ['HOLDER', 'TOKEN', 'LEASE', 'SINCE', 'HELD', 'END', 'BY', 'WHY'],
            tenures.map(({ holder, token, lease, heldSince, endedAt, end }) => [
              ...[holder, token, lease, at(heldSince), span(endedAt - heldSince)],
              ...[end.reason, end.by, end.why],
            ]),
          ),
        )
      }),
    )
}
