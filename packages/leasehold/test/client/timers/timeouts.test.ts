import { describe, expect, it } from 'vitest'
import { Timed, Timeouts } from '../../../src/client/timers/timeouts.ts'
import { TimerQueue } from '../../../src/client/timers/timer-queue.ts'
import { LeaseholdError } from '../../../src/port/index.ts'
import { TestClock } from '../../../src/testing/index.ts'

class TestTimed extends Timed {
  readonly expire: () => void
  readonly stop: (error: LeaseholdError) => void

  constructor(expire: () => void, stop: (error: LeaseholdError) => void) {
    super()
    this.expire = expire
    this.stop = stop
  }
}

function open() {
  const clock = new TestClock()
  const start = clock.now()
  const all = new Timeouts(new TimerQueue(clock))
  const timeouts = {
    add: (timed: Timed, ms: number) => all.add(timed, ms, clock.now()),
    remove: (timed: Timed) => all.remove(timed),
    stop: (error: LeaseholdError) => all.stop(error),
  }
  /** The events, with the milliseconds after the start. */
  const log: string[] = []
  const timed = (name: string): Timed =>
    new TestTimed(
      () => log.push(`${name} ${clock.now() - start}`),
      (error) => log.push(`${name} ${error.code}`),
    )
  return { clock, timeouts, log, timed }
}

describe('time limits', () => {
  it('run out at their time, each once', async () => {
    const { clock, timeouts, log, timed } = open()
    timeouts.add(timed('long'), 300)
    timeouts.add(timed('short'), 100)
    await clock.advance(50)
    timeouts.add(timed('second short'), 100)
    await clock.advance(49)
    expect(log).toEqual([])
    await clock.advance(1000)
    expect(log).toEqual(['short 100', 'second short 150', 'long 300'])
  })

  it('that are the rest of a longer one share a list, which stays until its time', async () => {
    const clock = new TestClock()
    const queue = new TimerQueue(clock)
    const lists = new Set<unknown>()
    const schedule = queue.schedule.bind(queue)
    queue.schedule = (task, time) => {
      lists.add(task)
      schedule(task, time)
    }
    const timeouts = new Timeouts(queue)
    const log: number[] = []
    const start = clock.now()
    for (let each = 0; each < 1000; each++) {
      const timed = new TestTimed(
        () => log.push(clock.now() - start),
        () => {},
      )
      timeouts.add(timed, 600_000 - each / 1000, start)
      if (each > 0) timeouts.remove(timed)
    }
    expect(lists.size).toBe(1)
    await clock.advance(600_000)
    expect(log).toEqual([600_000])
  })

  it('are cancelled one by one, anywhere among those of the same length', async () => {
    for (const gone of [[0], [1], [2], [0, 1], [1, 2], [2, 1, 0], [0, 2]]) {
      const { clock, timeouts, log, timed } = open()
      const all = ['a', 'b', 'c'].map(timed)
      for (const each of all) timeouts.add(each, 100)
      for (const i of gone) timeouts.remove(all[i]!)
      // Cancelling an unset timeout does nothing.
      for (const i of gone) timeouts.remove(all[i]!)
      timeouts.add(timed('d'), 100)
      await clock.advance(100)
      const left = ['a', 'b', 'c'].filter((_, i) => !gone.includes(i))
      expect(log).toEqual([...left, 'd'].map((name) => `${name} 100`))
    }
  })

  it('are replaced by later ones', async () => {
    const { clock, timeouts, log, timed } = open()
    const one = timed('one')
    timeouts.add(one, 100)
    await clock.advance(60)
    timeouts.add(one, 100)
    timeouts.add(one, 70)
    await clock.advance(1000)
    expect(log).toEqual(['one 130'])
  })

  it('may be set again when they have run out', async () => {
    const { clock, timeouts, log } = open()
    let left = 3
    const again: Timed = new TestTimed(
      () => {
        log.push(`${clock.now()}`)
        if (--left > 0) timeouts.add(again, 100)
      },
      () => {},
    )
    const start = clock.now()
    timeouts.add(again, 100)
    await clock.advance(1000)
    expect(log).toEqual([100, 200, 300].map((ms) => `${start + ms}`))
  })

  it('start again after all of their length are over', async () => {
    const { clock, timeouts, log, timed } = open()
    timeouts.add(timed('one'), 100)
    await clock.advance(100)
    timeouts.add(timed('other'), 100)
    await clock.advance(100)
    expect(log).toEqual(['one 100', 'other 200'])
  })

  it('keep no other one in memory once they are removed', () => {
    const { timeouts, timed } = open()
    const all = ['a', 'b', 'c'].map(timed)
    for (const each of all) timeouts.add(each, 100)
    for (const each of all) timeouts.remove(each)
    for (const { before, after, list } of all) {
      expect([before, after, list]).toEqual([undefined, undefined, undefined])
    }
  })

  it('all end when the client stops, even those that are set meanwhile', () => {
    const { timeouts, log, timed } = open()
    const late = timed('late')
    timeouts.add(timed('a'), 100)
    timeouts.add(
      new TestTimed(
        () => {},
        () => timeouts.add(late, 100),
      ),
      100,
    )
    timeouts.add(timed('b'), 200)
    timeouts.stop(new LeaseholdError('closed', 'closed'))
    expect(log).toEqual(['a closed', 'late closed', 'b closed'])
  })
})
