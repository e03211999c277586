import type { Timer } from '../../src/port/index.ts'
import { TestClock } from '../../src/testing/index.ts'

/** A test clock that counts its timers, and those that keep the process running. */
export class CountingClock extends TestClock {
  readonly timers = new Set<{ readonly keepsRunning: boolean }>()

  /** How many timers keep the process running. */
  get keeping(): number {
    return [...this.timers].filter(({ keepsRunning }) => keepsRunning).length
  }

  override timer(time: number, run: () => void, keepsRunning = false): Timer {
    const entry = { keepsRunning }
    this.timers.add(entry)
    const timer = super.timer(time, () => {
      this.timers.delete(entry)
      run()
    })
    return {
      cancel: () => {
        this.timers.delete(entry)
        timer.cancel()
      },
    }
  }
}
