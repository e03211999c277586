import type { Timer } from '../../../src/port/index.ts'
import { TestClock } from '../../../src/testing/index.ts'

/** A test clock that knows whether a timer that is set would keep the process running. */
export class RunningClock extends TestClock {
  readonly #keeping = new Set<object>()

  /** Whether the process would go on running for the sake of a timer. */
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
