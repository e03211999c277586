import { describe, expect, it } from 'vitest'
import { KeepAlive } from '../../../src/client/timers/keep-alive.ts'
import { CountingClock } from '../counting-clock.ts'

const DAY_MS = 86_400_000

function open() {
  const clock = new CountingClock()
  return { clock, keepAlive: new KeepAlive(clock) }
}

describe('the process is kept running', () => {
  it('while at least one waits, by one timer', () => {
    const { clock, keepAlive } = open()
    expect(clock.keeping).toBe(0)
    keepAlive.enter()
    keepAlive.enter()
    expect(clock.keeping).toBe(1)
    keepAlive.leave()
    expect(clock.keeping).toBe(1)
    keepAlive.leave()
    expect(clock.keeping).toBe(0)
    keepAlive.enter()
    expect(clock.keeping).toBe(1)
  })

  it('for days if need be', async () => {
    const { clock, keepAlive } = open()
    keepAlive.enter()
    await clock.advance(3.5 * DAY_MS)
    expect(clock.keeping).toBe(1)
    keepAlive.leave()
    expect(clock.keeping).toBe(0)
  })

  it('until a promise is settled, one way or the other', async () => {
    const { clock, keepAlive } = open()
    for (const end of ['resolve', 'reject'] as const) {
      let settle = () => {}
      const promise = new Promise<void>((resolve, reject) => {
        settle = end === 'resolve' ? resolve : reject
      })
      promise.catch(() => {})
      keepAlive.during(promise)
      await clock.settle()
      expect(clock.keeping).toBe(1)
      settle()
      await clock.settle()
      expect(clock.keeping).toBe(0)
    }
  })
})
