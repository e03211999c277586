import { Leasehold, type RegisterOptions } from '../../../../src/index.ts'
import { testStore } from '../../../../src/testing/index.ts'
import { FaultyStore } from '../../../client/faulty-store.ts'

export const MINUTE = 60_000

export async function scene() {
  const { store, clock } = testStore()
  const leasehold = await Leasehold.open(store, { clock, holder: 'near' })
  const { registry } = leasehold
  /** A client that can be disconnected. */
  const farAway = async () => {
    const link = new FaultyStore(store, clock)
    return { link, registry: (await Leasehold.open(link, { clock, holder: 'far' })).registry }
  }
  /** Writes an instance or a health result, as anybody could. */
  const write = async (key: string, value: string) => {
    const { lease } = (await store.grant({ holder: 'x', ttl: 60 * MINUTE })) as { lease: string }
    await store.claim({ lease, claims: [{ key, mode: 'shared', value }] })
    return lease
  }
  const watching = async (options = {}) => {
    const watch = registry.watch('s', options)
    await clock.advance(10)
    await watch.ready
    const changes: string[] = []
    watch.on('joined', ({ type, instance }) => changes.push(`${instance.id} ${type}`))
    watch.on('changed', ({ type, instance, before }) =>
      changes.push(`${instance.id} ${type} ${before.status} ${instance.status}`),
    )
    watch.on('left', ({ type, instance, reason }) =>
      changes.push(`${instance.id} ${type} ${instance.status} ${reason}`),
    )
    return { watch, changes }
  }
  const register = (id: string, options: RegisterOptions = {}) =>
    registry.register('s', { id, ...options })
  return { store, clock, leasehold, registry, farAway, write, watching, register }
}

export const ids = (instances: readonly { readonly id: string }[]) => instances.map(({ id }) => id)
