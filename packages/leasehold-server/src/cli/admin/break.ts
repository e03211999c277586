import { Command } from 'commander'
import { type Duration, formatDuration, type LeaseStore, milliseconds } from 'leasehold/port'
import { type ConnectionFlags, withConnectionOptions, withStore } from '../connection.ts'
import { EXIT, EXIT_HELP, Exit } from '../exit-codes.ts'
import { print } from '../output.ts'
import { revokeAll } from './revoke.ts'

interface BreakFlags extends ConnectionFlags {
  readonly after: string
  readonly why: string
  readonly lease?: string
}

export function breakCommand(): Command {
  return withConnectionOptions(new Command('break'))
    .description('Set a final deadline for the leases that hold a key. Renewals cannot pass it.')
    .argument('[key]', 'the key; or use --lease')
    .requiredOption('--after <duration>', 'time until the deadline; the holders are notified now')
    .requiredOption('--why <reason>', 'shown to the holders and kept in history and audit log')
    .option('--lease <id>', 'break this lease')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
This ends the whole lease with everything it holds. Several locks of one client may share a lease.
${EXIT_HELP}`,
    )
    .action((key: string | undefined, flags: BreakFlags) => {
      const after = milliseconds(flags.after as Duration, '--after')
      return withStore(flags, async ({ store, by }) => {
        const leases = await leasesOf(store, key, flags.lease)
        if (leases.length === 0) throw new Exit(EXIT.notThere, `nobody holds "${key}"`)
        for (const lease of leases) {
          await revokeAll(store, { lease }, { by, why: flags.why, after })
        }
        print(flags.json, { leases, after }, () => {
          return `${leases.join(', ')} will end in ${formatDuration(after)} at the latest`
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
    throw new Exit(EXIT.usage, 'use either a key or --lease')
  }
  if (lease !== undefined) return [lease]
  const { claims, holders } = await store.read({ key: key! })
  return [...new Set(claims.slice(0, holders).map((claim) => claim.lease))]
}
