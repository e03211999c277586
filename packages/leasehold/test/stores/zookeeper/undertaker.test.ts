import { expect, it } from 'vitest'
import { systemRandom } from '../../../src/port/index.ts'
import type { Ending } from '../../../src/stores/zookeeper/ending.ts'
import type { Journal } from '../../../src/stores/zookeeper/journal.ts'
import type { Lessor } from '../../../src/stores/zookeeper/lessor.ts'
import { Undertaker } from '../../../src/stores/zookeeper/undertaker.ts'

const LINGER = 1000
const DEAD = { node: { stat: { version: 7 } }, record: { linger: LINGER } }

/** What others would tell it of a lease that must be left alone for a while. */
function scene() {
  const now = { time: 0 }
  const seen = { family: [DEAD] as unknown[], isKept: false }
  const clock = { now: () => now.time, timer: () => ({ cancel: () => {} }) }
  const journal = { clock, random: systemRandom, nextName: () => 'name', tree: { paths: {} } }
  const ending = { family: async () => seen.family, end: async () => ({ leases: ['lease'] }) }
  const lessor = { get: () => (seen.isKept ? {} : undefined), ended: () => {} }
  const undertaker = new Undertaker(
    journal as unknown as Journal,
    ending as unknown as Ending,
    lessor as unknown as Lessor,
  )
  return { now, seen, undertaker }
}

it('ends a dead lease when it has been left alone for long enough', async () => {
  const { now, undertaker } = scene()
  expect(await undertaker.bury('lease')).toBe(false)
  now.time = LINGER
  expect(await undertaker.bury('lease')).toBe(true)
})

it.each<[string, (seen: ReturnType<typeof scene>['seen']) => void]>([
  ['is no more', (seen) => (seen.family = [])],
  ['is kept here', (seen) => (seen.isKept = true)],
])('forgets since when a lease was dead that %s', async (_, befall) => {
  const { now, seen, undertaker } = scene()
  expect(await undertaker.bury('lease')).toBe(false)
  befall(seen)
  await undertaker.bury('lease')
  Object.assign(seen, { family: [DEAD], isKept: false })
  now.time = LINGER
  expect(await undertaker.bury('lease')).toBe(false)
})
