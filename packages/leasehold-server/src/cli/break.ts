import { Command } from 'commander'
import { type Duration, formatDuration, type LeaseStore, milliseconds } from 'leasehold/port'
import { type ConnectionFlags, connecting, withStore } from './connection.ts'
import { EXIT, EXIT_HELP, Exit } from './exit-codes.ts'
import { revokeAll } from './revoke.ts'
import { print } from './table.ts'

interface BreakFlags extends ConnectionFlags {
  readonly after: string
  readonly why: string
  readonly lease?: string
}

export function breakCommand(): Command {
  return connecting(new Command('break'))
    .description('Gives the leases that hold a key a last deadline, which no renewal can pass.')
    .argument('[key]', 'the key; or give --lease')
    .requiredOption('--after <duration>', 'when it takes effect: holders are told, and end before')
    .requiredOption('--why <reason>', 'told to the holders, and kept in history and audit')
    .option('--lease <id>', 'this lease')
    .option('--json', 'prints JSON')
    .addHelpText(
      'after',
      `
It ends the whole lease, with all that is held under it: several locks of one client may share one.
${EXIT_HELP}`,
    )
    .action((key: string | undefined, flags: BreakFlags) => {
      const after = milliseconds(flags.after as Duration, '--after')
      return withStore(flags, async ({ store, who }) => {
        const leases = await leasesOf(store, key, flags.lease)
        if (leases.length === 0) throw new Exit(EXIT.notThere, `nobody holds "${key}"`)
        for (const lease of leases) {
          await revokeAll(store, { lease }, { by: who, why: flags.why, after })
        }
        print(flags.json, { leases, after }, () => {
          return `${leases.join(', ')} will end within ${formatDuration(after)}`
        })
      })
    })
}

async function leasesOf(
  store: LeaseStore,
  key: string | undefined,
  lease: string | undefined,
): Promise<readonly string[]> {
  if ((key === undefined) === (lease === undefined)) {
    throw new Exit(EXIT.usage, 'give either a key or --lease')
  }
  if (lease !== undefined) return [lease]
  const { claims, holders } = await store.read({ key: key! })
  return [...new Set(claims.slice(0, holders).map((claim) => claim.lease))]
}
