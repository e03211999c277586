import {
  type CheckChange,
  type CheckerOptions,
  Leasehold,
  type Probe,
  type RegisterOptions,
} from '../../../../src/index.ts'
import { testStore } from '../../../../src/testing/index.ts'
import { FaultyStore } from '../../../client/faulty-store.ts'

export const OK = { status: 'passing', note: '' } as const
export const BAD = { status: 'critical', note: 'bad' } as const
export const MINUTE = 60_000

/** Instances on one side, and on the other a checker with a faulty link. */
export async function scene(randomValue = 0.5) {
  const { store, clock } = testStore()
  // With 0.5, jitter does not change an interval.
  const random = { next: () => randomValue, id: () => 'an id of twelve characters' }
  const link = new FaultyStore(store, clock)
  const far = await Leasehold.open(link, { clock, holder: 'checker', random, callTimeout: '1s' })
  const { registry } = await Leasehold.open(store, { clock, holder: 'near' })
  const events: CheckChange[] = []
  const probes: [host: string, time: number][] = []
  let result: (host: string) => ReturnType<Probe> = async () => OK
  const checking = (options: CheckerOptions = {}) => {
    const probe: Probe = ({ host }) => {
      probes.push([host, clock.now()])
      return result(host)
    }
    const checker = far.registry.checker({ probe, brake: false, ...options })
    checker.on('changed', (change) => events.push(change))
    return checker
  }
  const register = (id: string, check: object, more: RegisterOptions = {}) =>
    registry.register('s', { id, address: `${id}:8080`, check: check as never, ...more })
  const entry = (id: string, check: object, service = 's') =>
    registry.entry(service, id, { address: `${id}:8080`, check: check as never }).value
  /** Writes these values under one lease that nobody renews. */
  const write = async (values: Readonly<Record<string, string>>, ttl = 60 * MINUTE) => {
    const { lease } = (await store.grant({ holder: 'x', ttl })) as { readonly lease: string }
    const claims = Object.entries(values).map(([key, value]) => ({ key, value }))
    await store.claim({ lease, claims })
    return lease
  }
  return {
    ...{ store, clock, link, far, registry, events, probes, checking, register, entry, write },
    found: async () => registry.find('s', { status: 'any' }),
    let: (next: typeof result) => {
      result = next
    },
  }
}
