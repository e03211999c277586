import type { Notice, Observer, Watch } from '../../port/index.ts'

/** One who watches: hears nothing after `close`, nor after a watch's last notice. */
export class Observing implements Watch {
  readonly #observer: Observer
  readonly #left: () => void
  #isOpen = true

  constructor(observer: Observer, left: () => void) {
    this.#observer = observer
    this.#left = left
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  notify(notice: Notice): void {
    if (!this.#isOpen) return
    if (['gone', 'compacted', 'interrupted'].includes(notice.type)) this.close()
    try {
      this.#observer(notice)
    } catch (error) {
      // The store must go on all the same; but the fault should not vanish either.
      process.emitWarning(error instanceof Error ? error : new Error(String(error)))
    }
  }

  close(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#left()
  }
}
