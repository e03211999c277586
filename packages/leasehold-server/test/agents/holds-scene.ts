import { Leasehold } from 'leasehold'
import {
  delegate,
  LeaseholdError,
  type LeaseStore,
  type Query,
  systemRandom as random,
} from 'leasehold/port'
import { testStore } from 'leasehold/testing'
import { AgentHolds, type Ceilings, Fleet } from '../../src/agents/index.ts'

/** A store on a clock that stands still, and agents on it. */
export async function scene() {
  const { store, clock } = testStore()
  const open = async (
    agent: string,
    through: LeaseStore = store,
    ceilings: Partial<Ceilings> = {},
  ) => {
    const leasehold = await Leasehold.open(through, { clock, holder: agent })
    const paths = { folder: '/', repository: 'shop' }
    const given = { leasehold, store: through, clock, random }
    const holds = new AgentHolds({ ...given, agent, paths, ceilings })
    return { holds, fleet: new Fleet(given, holds), leasehold }
  }
  /** A waiting acquisition that answers after its default of 0 seconds, and a second for the notice. */
  const waits = async (holds: AgentHolds, key: string) => {
    const asking = holds.acquire(wanted(key))
    await clock.advance(2000)
    const outcome = await asking
    if (outcome.state !== 'waiting') throw new Error(outcome.state)
    return outcome
  }
  return { store, clock, open, waits, ada: await open('ada'), bob: await open('bob') }
}

/** A store that fails to read these keys. */
export function unreadable(store: LeaseStore, prefix: string): LeaseStore {
  const read = (query: Query) => {
    const { key, prefix: given } = query as { key?: string; prefix?: string }
    if (!(key ?? given)?.startsWith(prefix)) return store.read(query)
    return Promise.reject(new LeaseholdError('timeout', 'the store did not answer'))
  }
  return delegate(store, { read: read as LeaseStore['read'] })
}

export const wanted = (key: string) => ({ keys: [key], purpose: `work on ${key}` })
export const HOUR = 3_600_000

export async function handleOf(holds: AgentHolds, key: string): Promise<string> {
  const outcome = await holds.acquire(wanted(key))
  if (outcome.state !== 'held' && outcome.state !== 'waiting') throw new Error(outcome.state)
  return outcome.record.handle
}

export const stateOf = ({ mine }: { mine: ReturnType<AgentHolds['mine']> }) =>
  mine.map(({ state, why }) => [state, why])
