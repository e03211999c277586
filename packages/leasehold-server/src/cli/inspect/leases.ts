import { Command } from 'commander'
import { type ConnectionFlags, withConnectionOptions, withStore } from '../connection.ts'
import { EXIT_HELP } from '../exit-codes.ts'
import { integerOf } from '../number-options.ts'
import { print, since, span, table, until } from '../output.ts'
import { readLeases } from '../read-leases.ts'

interface LeasesFlags extends ConnectionFlags {
  readonly holder?: string
  readonly limit?: string
}

export function leasesCommand(): Command {
  return withConnectionOptions(new Command('leases'))
    .description('List the leases with their holders, and how many keys each has claimed.')
    .option('--holder <name>', 'only leases of this holder')
    .option('--limit <number>', 'the most leases to read')
    .option('--json', 'print JSON')
    .addHelpText('after', EXIT_HELP)
    .action((flags: LeasesFlags) => {
      const most = flags.limit === undefined ? Infinity : integerOf('--limit', flags.limit, 1)
      return withStore(flags, async ({ store }) => {
        const all = await readLeases(store, most)
        const leases = all.filter(({ holder }) => (flags.holder ?? holder) === holder)
        print(flags.json, leases, () =>
          table(
            ['LEASE', 'HOLDER', 'TTL', 'LEFT', 'SINCE', 'KEYS', 'CHILDREN', 'PARENT', 'LABELS'],
            leases.map((lease) => [
              ...[lease.id, lease.holder, span(lease.ttl), until(lease.until)],
              ...[since(lease.grantedAt), lease.claims, lease.children, lease.parent],
              Object.entries(lease.labels)
                .map(([name, value]) => `${name}=${value}`)
                .join(' '),
            ]),
          ),
        )
      })
    })
}
