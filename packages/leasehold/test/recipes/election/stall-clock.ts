import type { Clock, Timer } from '../../../src/port/index.ts'

/**
 * One process's view of a shared clock. While it is stalled, time passes, but its timers do not
 * run. They all run when it resumes.
 */
export class StallClock implements Clock {
  readonly #truth: Clock
  #missed: Set<() => void> | undefined = undefined

  constructor(truth: Clock) {
    this.#truth = truth
  }

  get stalled(): boolean {
    return this.#missed !== undefined
  }

  stall(): void {
    this.#missed ??= new Set()
  }

  goOn(): void {
    const missed = this.#missed ?? new Set()
    this.#missed = undefined
    for (const run of missed) run()
  }

  now(): number {
    return this.#truth.now()
  }

  asleep(): number {
    return this.#truth.asleep()
  }

  timer(time: number, run: () => void): Timer {
    const own = () => run()
    const timer = this.#truth.timer(time, () => this.#run(own))
    return {
      cancel: () => {
        timer.cancel()
        this.#missed?.delete(own)
      },
    }
  }

  defer(run: () => void): void {
    this.#truth.defer(() => this.#run(run))
  }

  #run(run: () => void): void {
    if (this.#missed === undefined) run()
    else this.#missed.add(run)
  }
}
