import { performance } from 'node:perf_hooks'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { SystemClock } from '../../src/port/index.ts'

/** What the machine's three clocks show. */
const machine = { monotonic: 0, wall: 0, uptime: 0 }
const uptime = vi.fn(() => machine.uptime / 1000)
const makeClock = () => new SystemClock(uptime)

function pass(milliseconds: number): void {
  machine.monotonic += milliseconds
  machine.wall += milliseconds
  machine.uptime += milliseconds
}

function sleep(milliseconds: number): void {
  machine.wall += milliseconds
  machine.uptime += milliseconds
}

beforeEach(() => {
  Object.assign(machine, { monotonic: 5000, wall: 1_800_000_000_000, uptime: 90_000 })
  vi.spyOn(performance, 'now').mockImplementation(() => machine.monotonic)
  vi.spyOn(Date, 'now').mockImplementation(() => machine.wall)
})

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

describe("the machine's clock", () => {
  it('reads the uptime of the machine by itself', () => {
    const clock = new SystemClock()
    expect(clock.asleep()).toBe(0)
    expect(clock.now()).toBe(performance.timeOrigin + 5000)
  })

  it('follows the monotonic clock since the process started', () => {
    const clock = makeClock()
    expect(clock.now()).toBe(performance.timeOrigin + 5000)
    machine.wall -= 1_000_000
    pass(10)
    expect(clock.now()).toBe(performance.timeOrigin + 5010)
  })

  it('adds up all times that the machine was asleep', () => {
    const clock = makeClock()
    expect(clock.asleep()).toBe(0)
    sleep(60_000)
    expect(clock.asleep()).toBeCloseTo(60_000)
    pass(5000)
    expect(clock.asleep()).toBeCloseTo(60_000)
    sleep(1000)
    expect(clock.asleep()).toBeCloseTo(61_000)
  })

  it('does not mistake noise for sleep', () => {
    const clock = makeClock()
    sleep(200)
    expect(clock.asleep()).toBe(0)
    pass(1000)
    expect(clock.asleep()).toBe(0)
  })

  it('treats 200 ms of the wall clock or of the uptime as noise', () => {
    const clock = makeClock()
    sleep(300)
    machine.wall -= 100
    pass(1000)
    expect(clock.asleep()).toBe(0)
    const other = makeClock()
    sleep(200)
    machine.wall += 50
    pass(1000)
    expect(other.asleep()).toBe(0)
  })

  it('does not mistake a wall clock that was set for sleep', () => {
    const clock = makeClock()
    machine.wall += 3_600_000
    // The uptime counts in steps.
    machine.uptime += 10
    expect(clock.asleep()).toBe(0)
    machine.wall -= 7_200_000
    expect(clock.asleep()).toBe(0)
    sleep(2000)
    expect(clock.asleep()).toBeCloseTo(2010)
  })

  it('reads the slow uptime only if the clocks have moved apart', () => {
    const clock = makeClock()
    uptime.mockClear()
    for (let turn = 0; turn < 5; turn++) {
      pass(1000)
      clock.asleep()
    }
    expect(uptime).not.toHaveBeenCalled()
    machine.wall += 1000
    clock.asleep()
    expect(uptime).toHaveBeenCalledTimes(1)
    pass(1000)
    clock.asleep()
    expect(uptime).toHaveBeenCalledTimes(1)
  })
})

describe('a timer', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setImmediate'] })
  })

  /** Advances the monotonic clock, so that timers fire. */
  function go(milliseconds: number): void {
    pass(milliseconds)
    vi.advanceTimersByTime(milliseconds)
  }

  it('fires at its time, not before, and once', () => {
    const clock = makeClock()
    const run = vi.fn()
    clock.timer(clock.now() + 100, run)
    go(99)
    expect(run).not.toHaveBeenCalled()
    go(1)
    expect(run).toHaveBeenCalledTimes(1)
    go(1000)
    expect(run).toHaveBeenCalledTimes(1)
  })

  it('checks the time again if setTimeout fired early', () => {
    const clock = makeClock()
    const run = vi.fn()
    clock.timer(clock.now() + 100, run)
    pass(99.5)
    vi.advanceTimersByTime(100)
    expect(run).not.toHaveBeenCalled()
    pass(0.5)
    vi.advanceTimersByTime(1)
    expect(run).toHaveBeenCalledTimes(1)
  })

  it('that is overdue fires at the next turn', () => {
    const clock = makeClock()
    const run = vi.fn()
    clock.timer(clock.now() - 50, run)
    vi.advanceTimersByTime(1)
    expect(run).toHaveBeenCalledTimes(1)
  })

  it('can be later than setTimeout allows', () => {
    const clock = makeClock()
    const run = vi.fn()
    const delay = 2 ** 31 - 1
    clock.timer(clock.now() + delay + 500, run)
    go(delay)
    expect(run).not.toHaveBeenCalled()
    go(500)
    expect(run).toHaveBeenCalledTimes(1)
  })

  it('for Infinity is never set', () => {
    const clock = makeClock()
    const timer = clock.timer(Infinity, () => {})
    expect(vi.getTimerCount()).toBe(0)
    timer.cancel()
  })

  it('that is cancelled does not fire', () => {
    const clock = makeClock()
    const run = vi.fn()
    clock.timer(clock.now() + 100, run).cancel()
    go(1000)
    expect(run).not.toHaveBeenCalled()
  })

  it('keeps the process alive only with keepAlive', () => {
    const clock = makeClock()
    const unref = vi.fn()
    const set = vi.spyOn(globalThis, 'setTimeout').mockImplementation(() => ({ unref }) as never)
    clock.timer(clock.now() + 100, () => {})
    expect(unref).toHaveBeenCalledTimes(1)
    clock.timer(clock.now() + 100, () => {}, true)
    expect(unref).toHaveBeenCalledTimes(1)
    expect(set.mock.calls.map(([, delay]) => delay)).toEqual([100, 100])
  })

  it('that is deferred runs in a later turn', () => {
    const run = vi.fn()
    makeClock().defer(run)
    expect(run).not.toHaveBeenCalled()
    vi.runAllTimers()
    expect(run).toHaveBeenCalledTimes(1)
  })
})
