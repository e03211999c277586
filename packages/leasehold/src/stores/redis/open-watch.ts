import type { LeaseholdError, Notice, Observer, Watch } from '../../port/index.ts'

/** One who watches. After its end it hears nothing more. */
export class OpenWatch implements Watch {
  readonly #observer: Observer
  readonly #closed: () => void
  #open = true

  constructor(observer: Observer, closed: () => void) {
    this.#observer = observer
    this.#closed = closed
  }

  get isOpen(): boolean {
    return this.#open
  }

  close(): void {
    if (!this.#open) return
    this.#open = false
    this.#closed()
  }

  interrupt(error: LeaseholdError): void {
    this.tell({ type: 'interrupted', error })
  }

  protected tell(notice: Notice): void {
    if (!this.#open) return
    const { type } = notice
    if (type === 'gone' || type === 'compacted' || type === 'interrupted') this.close()
    try {
      this.#observer(notice)
    } catch (error) {
      // The others who watch must hear all the same; but the fault should not vanish either.
      process.emitWarning(error instanceof Error ? error : new Error(String(error)))
    }
  }
}
