import type { Lease, LeaseStore } from 'leasehold/port'

const PAGE = 1000

/** Reads up to `most` leases, page by page. */
export async function readLeases(store: LeaseStore, most: number): Promise<Lease[]> {
  const leases: Lease[] = []
  let after: string | undefined
  for (let more = true; more && leases.length < most; ) {
    const limit = Math.min(PAGE, most - leases.length)
    const page = await store.read({ leases: true, after, limit })
    leases.push(...page.leases)
    more = page.more
    after = page.leases.at(-1)?.id
  }
  return leases
}
