import { Leasehold, type RegisterOptions } from 'leasehold'
import { testStore } from 'leasehold/testing'
import { pino } from 'pino'
import { FaultyStore } from '../../../leasehold/test/client/faulty-store.ts'
import { RegistryView } from '../../src/gateways/registry-view/index.ts'

export const quiet = pino({ level: 'silent' })

/** A store on a clock that the test moves, and a view of it that can be disconnected. */
export async function viewScene() {
  const { store, clock } = testStore()
  const random = { next: () => 0.5, id: () => 'id' }
  const link = new FaultyStore(store, clock)
  const open = async (): Promise<RegistryView> => {
    const opening = RegistryView.open({ store: link, clock, random, log: quiet })
    await clock.advance(10)
    return opening
  }
  const near = await Leasehold.open(store, { clock, holder: 'near' })
  const register = (service: string, id: string, options: RegisterOptions = {}) =>
    near.registry.register(service, { id, ...options })
  /** Instances whose process dies with `die`: their leases expire 10 s later. */
  const doomed = async (service: string, count: number) => {
    const connection = new FaultyStore(store, clock)
    const { registry } = await Leasehold.open(connection, { clock, holder: 'doomed' })
    for (let at = 0; at < count; at++) {
      const address = `10.0.1.${at}:80`
      await registry.register(service, { id: `doomed-${at}`, ttl: '10s', address })
    }
    return { die: () => connection.freeze() }
  }
  return { store, clock, link, open, register, doomed }
}
