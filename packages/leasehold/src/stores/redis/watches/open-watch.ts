import {
  callObserver,
  type LeaseholdError,
  type Notice,
  type Observer,
  type Watch,
} from '../../../port/index.ts'

/** One watch. After its end it gets no notice. */
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
    this.notify({ type: 'interrupted', error })
  }

  protected notify(notice: Notice): void {
    if (!this.#open) return
    const { type } = notice
    if (type === 'gone' || type === 'compacted' || type === 'interrupted') this.close()
    callObserver(this.#observer, notice)
  }
}
