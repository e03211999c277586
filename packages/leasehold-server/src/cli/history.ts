import { Command } from 'commander'
import { type ConnectionFlags, connecting, withStore } from './connection.ts'
import { EXIT_HELP } from './exit-codes.ts'
import { at, print, span, table } from './table.ts'

export function historyCommand(): Command {
  return connecting(new Command('history'))
    .description('Shows who held a key before, the latest first, and how that ended.')
    .argument('<key>')
    .option('--json', 'prints JSON')
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
