import {
  type ElectionOptions,
  Leasehold,
  type LeaseholdOptions,
  type Term,
} from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../../client/faulty-store.ts'

export const KEY = 'election/boss/line'

/** Clients on one store, each with its own link that can fail. */
export function testClients() {
  const clock = new TestClock()
  const store = memoryStore({ clock })
  const open = async (holder: string, options: LeaseholdOptions = {}) => {
    const link = new FaultyStore(store, clock)
    const leasehold = await Leasehold.open(link, { clock, holder, callTimeout: '1s', ...options })
    const events: string[] = []
    leasehold.on('recipe-event', ({ recipe, event }) => {
      if (recipe === 'election') events.push(event)
    })
    return { link, leasehold, events }
  }
  return { clock, store, open }
}

/** Leads in a loop and collects its terms. A term ends when it is asked to. */
export function leading(leasehold: Leasehold, options: ElectionOptions = {}, signal?: AbortSignal) {
  const terms: Term[] = []
  const election = leasehold.election('boss', { ttl: '2s', ...options })
  const ended = (async () => {
    for await (const term of election.lead({ signal })) {
      terms.push(term)
      await new Promise((resolve) => term.asked.addEventListener('abort', resolve))
    }
  })()
  return { terms, election, ended }
}
