import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { TimerQueue, type TimerTask } from '../../../src/client/timers/timer-queue.ts'
import type { Clock } from '../../../src/port/index.ts'
import { SeededRandom, TestClock } from '../../../src/testing/index.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** Moves only on request, to the time of the next timer: like an idle machine. */
class HandClock implements Clock {
  timers: { readonly time: number; readonly run: () => void }[] = []
  readonly #asleep: number
  #now: number

  constructor(now: number, asleep: number) {
    this.#now = now
    this.#asleep = asleep
  }

  now(): number {
    return this.#now
  }

  asleep(): number {
    return this.#asleep
  }

  timer(time: number, run: () => void): { cancel(): void } {
    const timer = { time, run }
    this.timers.push(timer)
    return { cancel: () => void this.timers.splice(this.timers.indexOf(timer), 1) }
  }

  defer(run: () => void): void {
    run()
  }

  ring(): void {
    const [timer] = this.timers.splice(0, 1)
    this.#now = Math.max(this.#now, timer!.time)
    timer!.run()
  }
}

/** A task that records its calls, and requests further calls at the remaining times. */
function taskOf(
  calls: unknown[],
  name: unknown = 'task',
  again: readonly number[] = [],
): TimerTask {
  const left = [...again]
  return {
    queuedAt: Infinity,
    run: (now) => {
      calls.push(name === 'now' ? now : name)
      return left.shift() ?? Infinity
    },
  }
}

describe('the timer queue', () => {
  // A timer uses a clock that stops while the machine is suspended, for a time on a clock that does
  // not. Subtracting and adding the difference may give another number. A queue that then finds
  // itself too early would set the same timer again, without end.
  it('calls a task when its timer fires, although the sum of two clocks is rounded down', () => {
    // Half of the resolution of the time, so that it is rounded twice.
    const asleep = 1000 + 2 ** -33
    const time = 1_101_500 + 2 ** -32
    expect(time - asleep + asleep).toBeLessThan(time)
    const clock = new HandClock(1_100_000, asleep)
    const queue = new TimerQueue(clock)
    const called: number[] = []
    const task: TimerTask = { queuedAt: Infinity, run: (now) => called.push(now) && Infinity }
    queue.schedule(task, time)
    clock.ring()
    expect(called).toEqual([time])
    expect(clock.timers).toEqual([])
  })

  it('calls tasks in the order of their times, in any order of insertion', async () => {
    const random = new SeededRandom(7)
    for (let round = 0; round < 20; round++) {
      const clock = new TestClock()
      const queue = new TimerQueue(clock)
      const times = Array.from({ length: 60 }, () => Math.ceil(random.between(0, 500)))
      const calls: number[] = []
      const tasks = times.map((time) => taskOf(calls, time))
      for (const [i, task] of tasks.entries()) queue.schedule(task, clock.now() + times[i]!)
      // Some are dropped, from anywhere in the order.
      const dropped = tasks.filter((_, i) => i % 5 === round % 5)
      for (const task of dropped) queue.drop(task)
      await clock.advance(1000)
      const left = times.filter((_, i) => i % 5 !== round % 5)
      expect(calls).toEqual(left.sort((a, b) => a - b))
    }
  })

  it('calls a task at its time, and not before', async () => {
    const clock = new TestClock()
    const queue = new TimerQueue(clock)
    const calls: number[] = []
    const due = clock.now() + 2500
    queue.schedule(taskOf(calls, 'now'), due)
    await clock.advance(2499)
    expect(calls).toEqual([])
    await clock.advance(1)
    expect(calls).toEqual([due])
    await clock.advance(10_000)
    expect(calls).toEqual([due])
  })

  it('calls a task once, at the earliest requested time', async () => {
    const clock = new TestClock()
    const queue = new TimerQueue(clock)
    const calls: number[] = []
    const task = taskOf(calls, 'now')
    const start = clock.now()
    for (const ms of [300, 100, 100, 200]) queue.schedule(task, start + ms)
    await clock.advance(1000)
    expect(calls).toEqual([start + 100])
    queue.schedule(task, clock.now() + 50)
    await clock.advance(100)
    expect(calls).toEqual([start + 100, start + 1050])
  })

  it('calls a task again on its request, but not twice in one turn', async () => {
    const clock = new TestClock()
    const queue = new TimerQueue(clock)
    const calls: number[] = []
    const start = clock.now()
    queue.schedule(taskOf(calls, 'now', [start + 200, start + 200, start]), start + 100)
    await clock.advance(1000)
    expect(calls).toEqual([start + 100, start + 200, start + 201, start + 202])
  })

  it('calls all that are due after a stall, in their order', async () => {
    const clock = new TestClock()
    const queue = new TimerQueue(clock)
    const calls: string[] = []
    queue.schedule(taskOf(calls, 'second'), clock.now() + 200)
    queue.schedule(taskOf(calls, 'first'), clock.now() + 100)
    queue.schedule(taskOf(calls, 'later'), clock.now() + 5000)
    clock.stall(2000)
    expect(calls).toEqual([])
    await clock.advance(0)
    expect(calls).toEqual(['first', 'second'])
    await clock.advance(2999)
    expect(calls).toHaveLength(2)
    await clock.advance(1)
    expect(calls).toEqual(['first', 'second', 'later'])
  })

  it('lets a task schedule another one while it runs', async () => {
    const clock = new TestClock()
    const queue = new TimerQueue(clock)
    const calls: string[] = []
    const inner = taskOf(calls, 'inner')
    const outer: TimerTask = {
      queuedAt: Infinity,
      run: (now) => {
        queue.schedule(inner, now + 10)
        calls.push('outer')
        return Infinity
      },
    }
    queue.schedule(outer, clock.now() + 100)
    await clock.advance(109)
    expect(calls).toEqual(['outer'])
    await clock.advance(1)
    expect(calls).toEqual(['outer', 'inner'])
  })

  it('checks the clock at least once a second, because timers stop in a suspended machine', async () => {
    const clock = new TestClock()
    const queue = new TimerQueue(clock)
    const calls: number[] = []
    const start = queue.now()
    queue.schedule(taskOf(calls, 'now'), start + 60_000)
    await clock.advance(500)
    clock.sleep(59_000)
    await clock.advance(499)
    expect(calls).toEqual([])
    await clock.advance(1)
    expect(calls).toEqual([start + 60_000])
  })

  it('has one timer, for the first task', () => {
    const clock = new HandClock(1000, 0)
    const queue = new TimerQueue(clock)
    const [a, b, c] = [1, 2, 3].map(() => taskOf([]))
    queue.schedule(a!, 1500)
    queue.schedule(b!, 1400)
    queue.schedule(c!, 1600)
    expect(clock.timers.map(({ time }) => time)).toEqual([1400])
  })

  it('calls nothing after it was stopped', async () => {
    const clock = new HandClock(1000, 0)
    const queue = new TimerQueue(clock)
    const calls: string[] = []
    queue.schedule(taskOf(calls), 1500)
    queue.stop()
    expect(clock.timers).toEqual([])
    queue.schedule(taskOf(calls), 1500)
    expect(clock.timers).toEqual([])
    expect(calls).toEqual([])
  })

  it('may be stopped before its first task', () => {
    expect(() => new TimerQueue(new TestClock()).stop()).not.toThrow()
  })

  it('does not accumulate tasks that are added and removed', async () => {
    const clock = new TestClock()
    const queue = new TimerQueue(clock)
    const references: WeakRef<TimerTask>[] = []
    for (let n = 0; n < 1000; n++) {
      const task = taskOf([])
      queue.schedule(task, clock.now() + 3_600_000 - n)
      queue.drop(task)
      queue.drop(task)
      expect(task.queuedAt).toBe(Infinity)
      references.push(new WeakRef(task))
    }
    // Tasks of this turn are kept until its end.
    await new Promise((resolve) => setImmediate(resolve))
    collectGarbage()
    const kept = references.filter((reference) => reference.deref() !== undefined)
    expect(kept.length).toBeLessThan(200)
  })

  it('calls the remaining tasks at their times after many were removed', async () => {
    const random = new SeededRandom(3)
    for (let round = 0; round < 10; round++) {
      const clock = new TestClock()
      const queue = new TimerQueue(clock)
      const start = clock.now()
      const calls: number[] = []
      const times = Array.from({ length: 300 }, () => Math.ceil(random.between(0, 900)))
      const tasks = times.map(() => taskOf(calls, 'now'))
      for (const [i, task] of tasks.entries()) queue.schedule(task, start + times[i]!)
      // The first ones are dropped too, so that another one becomes the first.
      const isLeft = (i: number) => i % 4 === 0 && times[i]! > 300
      for (const [i, task] of tasks.entries()) if (!isLeft(i)) queue.drop(task)
      await clock.advance(1000)
      const left = times.filter((_, i) => isLeft(i)).sort((a, b) => a - b)
      expect(calls).toEqual(left.map((time) => start + time))
    }
  })

  it('calls the next at its time, after the first was dropped with many others', async () => {
    const clock = new TestClock()
    const queue = new TimerQueue(clock)
    const start = clock.now()
    const calls: number[] = []
    const [first, ...rest] = [100, 300, 200].map((time) => ({ time, task: taskOf(calls, 'now') }))
    const others = Array.from({ length: 120 }, () => ({ time: 900, task: taskOf([]) }))
    for (const { time, task } of [first!, ...rest, ...others]) queue.schedule(task, start + time)
    for (const { task } of [first!, ...others]) queue.drop(task)
    await clock.advance(1000)
    expect(calls).toEqual([start + 200, start + 300])
  })
})
