import { expect, it } from 'vitest'
import { LeaseWatch } from '../../../src/stores/redis/lease-watch.ts'

it('looks no more for a claim that waited and was released, of which nobody is told', () => {
  const watch = new LeaseWatch(
    'lease',
    () => {},
    () => {},
  )
  watch.stands({ revision: 1, claims: [], end: undefined })
  watch.waits(5)
  watch.waits(9)
  expect(watch.isWaiting).toBe(true)
  // What is made after such a look is not forgotten by it.
  watch.stands({ revision: 7, claims: [], end: undefined })
  expect(watch.isWaiting).toBe(true)
  watch.stands({ revision: 9, claims: [], end: undefined })
  expect(watch.isWaiting).toBe(false)
})
