import type { Timer } from '../../../src/port/index.ts'
import { TestClock } from '../../../src/testing/index.ts'

/** A test clock that knows whether a pending timer would keep the process running. */
export class RunningClock extends TestClock {
  readonly #keeping = new Set<object>()

  /** Whether a timer would keep the process running. */
  get keepsRunning(): boolean {
    return this.#keeping.size > 0
  }

  override timer(time: number, run: () => void, keepAlive = false): Timer {
    const mark = {}
    if (keepAlive) this.#keeping.add(mark)
    const timer = super.timer(time, () => {
      this.#keeping.delete(mark)
      run()
    })
    return {
      cancel: () => {
        this.#keeping.delete(mark)
        timer.cancel()
      },
    }
  }
}
