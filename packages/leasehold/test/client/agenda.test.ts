import { describe, expect, it } from 'vitest'
import { Agenda, type Task } from '../../src/client/agenda.ts'
import type { Clock } from '../../src/port/index.ts'

/** Moved by hand, and only to where a timer is due: like a machine with nothing else to do. */
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

describe('the agenda', () => {
  // A timer is set on a clock that stands still while the machine is suspended, for a time on one
  // that goes on. Taking the difference off and adding it again need not give the same number, and
  // an agenda that then finds itself too early sets the same timer again, without end.
  it('calls a task when its timer rings, though the sum of two clocks is rounded to before', () => {
    // Half of what the time can be told apart by, so that it is rounded twice.
    const asleep = 1000 + 2 ** -33
    const time = 1_101_500 + 2 ** -32
    expect(time - asleep + asleep).toBeLessThan(time)
    const clock = new HandClock(1_100_000, asleep)
    const agenda = new Agenda(clock)
    const called: number[] = []
    const task: Task = { agendaAt: Infinity, run: (now) => called.push(now) && Infinity }
    agenda.schedule(task, time)
    clock.ring()
    expect(called).toEqual([time])
    expect(clock.timers).toEqual([])
  })
})
