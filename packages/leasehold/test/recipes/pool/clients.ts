import {
  Leasehold,
  LeaseholdError,
  type PoolDefinition,
  type RecipeEvent,
} from '../../../src/index.ts'
import { usageRecordFrom } from '../../../src/recipes/pool/usage/usage.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { type CallName, FaultyStore } from '../../client/faulty-store.ts'
import type { Scene } from '../scenes/scene.ts'

export const gpus = (count: number, more: Partial<PoolDefinition> = {}): PoolDefinition => ({
  resources: Array.from({ length: count }, (_, i) => ({ name: `gpu-${i}` })),
  ...more,
})

/** Waits until this many requests are in the queue of the pool `gpu`. */
export const queueReaches = (scene: Scene, count: number): Promise<void> =>
  scene.until(`${count} are in the queue`, async () => {
    return (await scene.store.read({ key: 'pool/gpu/line' })).count === count
  })

/** Clients on one store, each with its own link that can fail. */
export function testClients() {
  const clock = new TestClock()
  const store = memoryStore({ clock })
  const open = async (holder: string) => {
    const link = new FaultyStore(store, clock)
    const leasehold = await Leasehold.open(link, { clock, holder, callTimeout: '1s' })
    const events: RecipeEvent[] = []
    leasehold.on('recipe-event', (one) => events.push(one))
    return { link, leasehold, events }
  }
  const records = async () => {
    const { claims } = await store.read({ key: 'pool/p/books' })
    return claims.map(({ value }) => usageRecordFrom(value))
  }
  return { clock, store, open, records }
}

/** Makes a store refuse every call of this name. */
export const failing = (name: CallName) => (called: CallName) =>
  called === name ? { error: new LeaseholdError('storage-full', 'no space') } : undefined
