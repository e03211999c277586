import { expect, it } from 'vitest'
import { Leasehold } from '../../../../src/index.ts'
import { memoryStore } from '../../../../src/stores/memory/index.ts'
import { TestClock } from '../../../../src/testing/index.ts'
import { type CallName, FaultyStore } from '../../../client/faulty-store.ts'

/** An instance that updates while these calls are lost, and what others read afterwards. */
async function saidWhileLost(lost: readonly CallName[], before: number) {
  const clock = new TestClock()
  const store = memoryStore({ clock })
  const link = new FaultyStore(store, clock)
  const leasehold = await Leasehold.open(link, { clock, holder: 'a', callTimeout: '1s' })
  const times = { ttl: '10s', grace: '1m' } as const
  const instance = await leasehold.registry.register('api', { id: 'i', ...times })
  link.fault = (call) => (lost.includes(call) ? { lost: 'request' } : undefined)
  await clock.advance(before)
  const failed = instance.maintenance(true, 'repairs').catch(({ code }) => code)
  await clock.advance(15_000)
  const code = await failed
  link.fault = () => undefined
  await clock.advance(30_000)
  expect(instance.state).toBe('present')
  const { claims } = await store.read({ key: instance.key })
  await leasehold.close()
  return { code, value: claims[0]!.value }
}

it('an update during a lapse is published when the lease recovers', async () => {
  const { code, value } = await saidWhileLost(['renew', 'update'], 15_000)
  expect(code).toBe('lapsed')
  expect(value).toContain('repairs')
})

it('an unanswered update is published when the store answers again', async () => {
  const { code, value } = await saidWhileLost(['update'], 0)
  expect(code).toBe('unknown-outcome')
  expect(value).toContain('repairs')
})
