import type { Clock, Timer } from '../../port/index.ts'

/** Something to run at a later time. */
export interface TimerTask {
  /** When the queue will run it; `Infinity` if it will not. Only the queue writes it. */
  queuedAt: number
  /** Called when its time has come. Returns when to run again, `Infinity` for not again. */
  run(now: number): number
}

interface Entry {
  readonly at: number
  readonly task: TimerTask
}

/**
 * Timers stand still with the monotonic clock while the machine is suspended, so they run late. The
 * queue never sleeps for longer than this: after waking, even a program that only listens soon
 * notices a loss.
 */
const SLEEP_MAX_MS = 1000

/**
 * Everything that one client does at a later time, on one timer that does not keep the process
 * running.
 *
 * Its time is the holder's: it continues while the machine is suspended, because the store's does.
 * A task never runs before its time, and runs late after a stall of the event loop. So code that
 * asks whether something is held must check the clock, and not wait for its task to run.
 */
export class TimerQueue {
  readonly #clock: Clock
  #heap: Entry[] = []
  #stale = 0
  #timer: Timer | undefined
  #wakeAt = Infinity
  #running = false
  #stopped = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  now(): number {
    return this.#clock.now() + this.#clock.asleep()
  }

  /** Runs the task at `time`, or earlier if that was planned before. */
  schedule(task: TimerTask, time: number): void {
    if (time >= task.queuedAt || this.#stopped) return
    if (task.queuedAt < Infinity) this.#stale++
    task.queuedAt = time
    this.#push({ at: time, task })
    if (!this.#running) this.#arm()
  }

  /** The task will not run any more. */
  drop(task: TimerTask): void {
    if (task.queuedAt === Infinity) return
    task.queuedAt = Infinity
    this.#stale++
    // Tasks that are dropped before their time must not pile up.
    if (this.#stale > 64 && this.#stale * 2 > this.#heap.length) this.#compact()
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#wakeAt = Infinity
    this.#heap = []
    this.#stopped = true
  }

  #wake(): void {
    // The timer fired, so its time has come, even if the sum of two clocks is rounded to just before
    // it: on a clock that only tests move it would otherwise never come.
    const now = Math.max(this.now(), this.#wakeAt)
    this.#timer = undefined
    this.#wakeAt = Infinity
    this.#running = true
    for (let top = this.#heap[0]; top !== undefined && top.at <= now; top = this.#heap[0]) {
      this.#pop()
      const { task } = top
      if (task.queuedAt !== top.at) {
        this.#stale--
        continue
      }
      task.queuedAt = Infinity
      const next = task.run(now)
      // A task that is due again at once waits for the next turn, so that this loop ends.
      if (next < Infinity) this.schedule(task, next > now ? next : now + 1)
    }
    this.#running = false
    this.#arm()
  }

  #arm(): void {
    const top = this.#heap[0]
    if (top === undefined || top.at >= this.#wakeAt) return
    const now = this.now()
    const wakeAt = Math.min(top.at, now + SLEEP_MAX_MS)
    if (wakeAt >= this.#wakeAt) return
    this.#timer?.cancel()
    this.#wakeAt = wakeAt
    this.#timer = this.#clock.timer(wakeAt - this.#clock.asleep(), () => this.#wake())
  }

  #push(entry: Entry): void {
    const heap = this.#heap
    let index = heap.length
    heap.push(entry)
    while (index > 0) {
      const above = (index - 1) >> 1
      if (heap[above]!.at <= entry.at) break
      heap[index] = heap[above]!
      index = above
    }
    heap[index] = entry
  }

  #pop(): void {
    const last = this.#heap.pop()!
    if (this.#heap.length > 0) this.#sink(last, 0)
  }

  #sink(entry: Entry, from: number): void {
    const heap = this.#heap
    let index = from
    for (;;) {
      let below = 2 * index + 1
      if (below >= heap.length) break
      if (below + 1 < heap.length && heap[below + 1]!.at < heap[below]!.at) below++
      if (heap[below]!.at >= entry.at) break
      heap[index] = heap[below]!
      index = below
    }
    heap[index] = entry
  }

  #compact(): void {
    this.#heap = this.#heap.filter((entry) => entry.task.queuedAt === entry.at)
    this.#stale = 0
    for (let index = (this.#heap.length >> 1) - 1; index >= 0; index--) {
      this.#sink(this.#heap[index]!, index)
    }
  }
}
