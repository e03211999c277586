import { Command } from 'commander'
import type { LeaseStore, Revoked, RevokeTarget } from 'leasehold/port'
import { type ConnectionFlags, withConnectionOptions, withStore } from '../connection.ts'
import { EXIT, EXIT_HELP, Exit } from '../exit-codes.ts'
import { integerOf } from '../number-options.ts'
import { plural, print } from '../output.ts'

interface RevokeFlags extends ConnectionFlags {
  readonly why: string
  readonly lease?: string
  readonly prefix?: string
  readonly claim?: string
}

export function revokeCommand(): Command {
  return withConnectionOptions(new Command('revoke'))
    .description('Take a key from its holders and waiters, or end a lease, at once.')
    .argument('[key]', 'revoke all claims on this key; or use --prefix or --lease')
    .requiredOption('--why <reason>', 'shown to the holders and kept in history and audit log')
    .option('--claim <token>', 'revoke only the claim with this fencing token')
    .option('--prefix <prefix>', 'revoke all claims on keys with this prefix')
    .option('--lease <id>', 'end this lease with everything under it')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `
This takes effect at once, even if the holder does not know yet: only its fencing token prevents late
writes. 'leasehold break' gives the holder time to finish.
${EXIT_HELP}`,
    )
    .action((key: string | undefined, flags: RevokeFlags) => {
      const target = targetOf(key, flags)
      return withStore(flags, async ({ store, by }) => {
        const ended = await revokeAll(store, target, { by, why: flags.why })
        print(
          flags.json,
          ended,
          () => `${plural(ended.claims, 'claim')} and ${plural(ended.leases, 'lease')} ended`,
        )
        if (ended.claims + ended.leases === 0) throw new Exit(EXIT.notThere)
      })
    })
}

function targetOf(key: string | undefined, { lease, prefix, claim }: RevokeFlags): RevokeTarget {
  const given = [key, lease, prefix].filter((each) => each !== undefined)
  if (given.length !== 1) {
    throw new Exit(EXIT.usage, 'use exactly one of a key, --prefix and --lease')
  }
  if (lease !== undefined) return { lease }
  if (prefix !== undefined) return { prefix }
  return { key: key!, ...(claim !== undefined && { token: integerOf('--claim', claim, 1) }) }
}

/** One call revokes a limited number of claims, so this repeats it until none are left. */
export async function revokeAll(
  store: LeaseStore,
  target: RevokeTarget,
  request: { readonly by: string; readonly why: string; readonly after?: number | undefined },
): Promise<Pick<Revoked, 'claims' | 'leases'>> {
  const sum = { claims: 0, leases: 0 }
  for (let more = true; more; ) {
    const revoked = await store.revoke({ target, ...request })
    sum.claims += revoked.claims
    sum.leases += revoked.leases
    more = revoked.more
  }
  return sum
}
