import { expect, it } from 'vitest'
import type { Clock } from '../../src/port/index.ts'
import { CallDeadlines } from '../../src/replica/calls/call-deadlines.ts'

/** Counts the timers that keep the process running. */
function countingClock() {
  const keeping = new Set<object>()
  const clock: Clock = {
    now: () => 0,
    asleep: () => 0,
    defer: () => {},
    timer: (_time, _run, keepAlive) => {
      const timer = { cancel: () => void keeping.delete(timer) }
      if (keepAlive) keeping.add(timer)
      return timer
    },
  }
  return { clock, keeping }
}

it('keeps the process running only while a call waits', async () => {
  const { clock, keeping } = countingClock()
  const deadlines = new CallDeadlines(clock, 10_000, () => undefined)
  const [one, two] = [deadlines.begin([]), deadlines.begin([])]
  expect(keeping.size).toBe(1)
  one.answer('done')
  expect(keeping.size).toBe(1)
  two.answer('done')
  expect(keeping.size).toBe(0)
  const three = deadlines.begin([])
  expect(keeping.size).toBe(1)
  three.answer('done')
  expect(keeping.size).toBe(0)
  expect(await Promise.all([one.promise, two.promise, three.promise])).toHaveLength(3)
})
