import { LeaseholdError } from 'leasehold/port'
import type { Demo, DemoOptions, DemoState } from '#demo'

/** Starts and ends the demo fleet. Its code is loaded at the first start or end. */
export class DemoControl {
  readonly #options: DemoOptions
  #loaded: Promise<Demo> | undefined
  #demo: Demo | undefined
  #isStopping = false

  constructor(options: DemoOptions) {
    this.#options = options
  }

  get state(): DemoState {
    return this.#demo?.state ?? 'off'
  }

  async start(): Promise<void> {
    await (await this.#load()).start()
  }

  async end(): Promise<void> {
    await (await this.#load()).end()
  }

  /** The server stops. */
  async stop(): Promise<void> {
    this.#isStopping = true
    await (await this.#loaded)?.stop()
  }

  #load(): Promise<Demo> {
    if (this.#isStopping) throw new LeaseholdError('closed', 'the server is stopping; try again')
    this.#loaded ??= import('#demo').then(({ Demo }) => {
      this.#demo = new Demo(this.#options)
      return this.#demo
    })
    return this.#loaded
  }
}
