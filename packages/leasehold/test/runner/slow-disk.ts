import { type ChangeSink, Kernel } from '../../src/kernel/index.ts'
import type { Clock, Guarantees, Refusal } from '../../src/port/index.ts'
import { type Durability, KernelRunner } from '../../src/runner/index.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { TestClock } from '../../src/testing/index.ts'

/** Stores nothing, and is durable only when the test says so. */
export class SlowDisk implements Durability {
  readonly changeSink: ChangeSink = new Kernel().replay()
  pending = false
  /** What cannot be written now. */
  full: Partial<Record<'grow' | 'shrink', Refusal>> = {}
  closed = 0
  #promise: Promise<void> | undefined
  #resolve: () => void = () => {}
  #reject: (error: Error) => void = () => {}

  constructor() {
    // Every change comes here; it only records that there was one.
    this.changeSink = new Proxy(this.changeSink, {
      get: () => () => {
        this.pending = true
      },
    })
  }

  obstacle(kind: 'grow' | 'shrink'): Refusal | undefined {
    return this.full[kind]
  }

  durable(): Promise<void> {
    this.#promise ??= new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    return this.#promise
  }

  sync(): void {
    this.pending = false
    this.#promise = undefined
    this.#resolve()
  }

  /** The write fails, and will be tried again. */
  fail(): void {
    this.#promise = undefined
    this.#reject(new Error('the disk failed'))
  }

  async close(): Promise<void> {
    this.closed++
    this.sync()
  }
}

export function runnerOn(
  durability: Durability | undefined,
  clock: Clock = new TestClock(),
): KernelRunner {
  const guarantees = memoryStore().guarantees as Guarantees
  const runner = new KernelRunner({ clock, guarantees, durability })
  runner.start()
  return runner
}
