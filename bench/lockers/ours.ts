import { Leasehold } from 'leasehold'
import type { LeaseStore } from 'leasehold/port'
import { remoteStore } from 'leasehold/remote'
import { type Locker, locker, type OpenLocker } from './locker.js'

/** Our client, on any store; closes the store too. */
export async function clientLocker(store: LeaseStore, ttl: number): Promise<Locker> {
  const leasehold = await Leasehold.open(store)
  const lock: Locker['lock'] = async (key) => {
    const held = await leasehold.lock(key, { ttl })
    return { release: () => held.release(), believes: () => held.held }
  }
  return locker(lock, async () => {
    await leasehold.close()
    await store.close()
  })
}

/** Through a server, over one connection. */
export const openRemote: OpenLocker = async ({ port, ttl }) =>
  clientLocker(await remoteStore(`http://127.0.0.1:${port}`), ttl)

async function electionLocker(store: LeaseStore, ttl: number): Promise<Locker> {
  const leasehold = await Leasehold.open(store)
  const campaign: Locker['lock'] = async (key) => {
    const term = await leasehold.election(key, { ttl }).campaign()
    return { release: () => term.resign(), believes: () => term.leading }
  }
  return locker(campaign, async () => {
    await leasehold.close()
    await store.close()
  })
}

/** An election through a server. */
export const openElection: OpenLocker = async ({ port, ttl }) =>
  electionLocker(await remoteStore(`http://127.0.0.1:${port}`), ttl)

/** The same with leases that end when their connection is closed. */
export const openTiedElection: OpenLocker = async ({ port, ttl }) =>
  electionLocker(await remoteStore(`http://127.0.0.1:${port}`, { tied: true }), ttl)
