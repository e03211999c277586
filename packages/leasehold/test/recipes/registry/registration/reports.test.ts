import { expect, it } from 'vitest'
import { Leasehold, LeaseholdError } from '../../../../src/index.ts'
import { memoryStore } from '../../../../src/stores/memory/index.ts'
import { TestClock } from '../../../../src/testing/index.ts'
import { FaultyStore } from '../../../client/faulty-store.ts'

it('a report that could not be published is published when it is repeated', async () => {
  const clock = new TestClock()
  const store = memoryStore({ clock })
  const link = new FaultyStore(store, clock)
  const leasehold = await Leasehold.open(link, { clock, holder: 'a', callTimeout: '1s' })
  const instance = await leasehold.registry.register('api', { id: 'i', ttl: '1m' })
  await instance.report('passing')
  link.fault = (call) => (call === 'update' ? { lost: 'request' } : undefined)
  const failed = instance.report('critical').catch(({ code }) => code)
  await clock.advance(30_000)
  expect(await failed).toBe('unknown-outcome')
  link.fault = () => undefined
  const again = instance.report('critical')
  await clock.advance(30_000)
  await again
  const { claims } = await store.read({ key: instance.key })
  expect(claims[0]!.value).toContain('critical')
  await leasehold.close()
})

it('a report that the store refused is published when it is repeated', async () => {
  const clock = new TestClock()
  const store = memoryStore({ clock })
  const link = new FaultyStore(store, clock)
  const leasehold = await Leasehold.open(link, { clock, holder: 'a' })
  const instance = await leasehold.registry.register('api', { id: 'i', ttl: '1m' })
  link.fault = (call) =>
    call === 'update' ? { error: new LeaseholdError('forbidden', 'no') } : undefined
  await expect(instance.report('critical')).rejects.toMatchObject({ code: 'forbidden' })
  link.fault = () => undefined
  await instance.report('critical')
  const { claims } = await store.read({ key: instance.key })
  expect(claims[0]!.value).toContain('critical')
  await leasehold.close()
})

it('a load sets no timer once the registration has ended', async () => {
  const clock = new TestClock()
  const leasehold = await Leasehold.open(memoryStore({ clock }), { clock, holder: 'a' })
  const instance = await leasehold.registry.register('api', { id: 'i' })
  await instance.release()
  let timers = 0
  clock.timer = () => {
    timers++
    return { cancel: () => {} }
  }
  instance.reportLoad(1)
  expect(timers).toBe(0)
})
