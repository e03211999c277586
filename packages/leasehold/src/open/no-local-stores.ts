import { LeaseholdError, type LeaseStore, show, withoutPassword } from '../port/index.ts'

/** Takes the place of `local-stores.ts` in a bundle for browsers and edge workers. */
export async function openLocalStore(url: string): Promise<LeaseStore> {
  throw new LeaseholdError(
    'unsupported',
    `store ${show(withoutPassword(url))} cannot be opened in a bundle for browsers: give the URL of a server, such as 'https://host:7420', or a store object, such as memoryStore() of leasehold/memory`,
  )
}
