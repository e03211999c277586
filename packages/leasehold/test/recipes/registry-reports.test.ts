import { expect, it } from 'vitest'
import { Leasehold } from '../../src/index.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { TestClock } from '../../src/testing/index.ts'
import { FaultyStore } from '../client/faulty-store.ts'

it('a report that could not be told is told when it is made again', async () => {
  const clock = new TestClock()
  const store = memoryStore({ clock })
  const line = new FaultyStore(store, clock)
  const leasehold = await Leasehold.open(line, { clock, holder: 'a', callTimeout: '1s' })
  const instance = await leasehold.registry.register('api', { id: 'i', ttl: '1m' })
  await instance.report('passing')
  line.fault = (call) => (call === 'update' ? { lost: 'request' } : undefined)
  const failed = instance.report('critical').catch(({ code }) => code)
  await clock.advance(30_000)
  expect(await failed).toBe('unknown-outcome')
  line.fault = () => undefined
  const again = instance.report('critical')
  await clock.advance(30_000)
  await again
  const { claims } = await store.read({ key: instance.key })
  expect(claims[0]!.value).toContain('critical')
  await leasehold.close()
})
