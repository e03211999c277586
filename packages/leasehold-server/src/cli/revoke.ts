import { Command } from 'commander'
import type { LeaseStore, Revoked, RevokeTarget } from 'leasehold/port'
import { type ConnectionFlags, connecting, withStore } from './connection.ts'
import { EXIT, EXIT_HELP, Exit } from './exit-codes.ts'
import { integerOf } from './numbers.ts'
import { print } from './table.ts'

interface RevokeFlags extends ConnectionFlags {
  readonly why: string
  readonly lease?: string
  readonly prefix?: string
  readonly claim?: string
}

export function revokeCommand(): Command {
  return connecting(new Command('revoke'))
    .description('Takes a key from whoever holds it or waits for it, or ends a lease, at once.')
    .argument('[key]', 'all claims on this key; or give --prefix or --lease')
    .requiredOption('--why <reason>', 'told to the holders, and kept in history and audit')
    .option('--claim <token>', 'of this key only the claim with this fencing token')
    .option('--prefix <prefix>', 'all claims on keys that begin with this')
    .option('--lease <id>', 'the lease, with everything under it')
    .option('--json', 'prints JSON')
    .addHelpText(
      'after',
      `
It takes effect at once, whatever the holder still believes: only its fencing token keeps it from
writing. 'leasehold break' gives it time to end.
${EXIT_HELP}`,
    )
    .action((key: string | undefined, flags: RevokeFlags) => {
      const target = targetOf(key, flags)
      return withStore(flags, async ({ store, who }) => {
        const ended = await revokeAll(store, target, { by: who, why: flags.why })
        print(flags.json, ended, () => `${ended.claims} claims and ${ended.leases} leases ended`)
        if (ended.claims + ended.leases === 0) throw new Exit(EXIT.notThere)
      })
    })
}

function targetOf(key: string | undefined, { lease, prefix, claim }: RevokeFlags): RevokeTarget {
  const given = [key, lease, prefix].filter((each) => each !== undefined)
  if (given.length !== 1) {
    throw new Exit(EXIT.usage, 'give one of a key, --prefix and --lease')
  }
  if (lease !== undefined) return { lease }
  if (prefix !== undefined) return { prefix }
  return { key: key!, ...(claim !== undefined && { token: integerOf('--claim', claim, 1) }) }
}

/** One call ends only so many: it is repeated until there are no more. */
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
