import { Coverage } from '../coverage.ts'
import type { Failure } from '../failure.ts'
import { PauseMeter } from '../pause-meter.ts'

/** Reports to the parent: new coverage, the longest turn of the event loop, and the memory used. */
export class Probe {
  readonly #coverage: Coverage | undefined
  readonly #meter = new PauseMeter()

  constructor() {
    if (process.argv[2] !== 'coverage') return
    this.#coverage = new Coverage()
    this.#coverage.start()
  }

  /** Reports that the child is ready, with facts that the parent needs. */
  ready(facts: object): void {
    this.#coverage?.takeNew()
    this.#meter.skip()
    this.#meter.take()
    process.send!({ ready: true, ...facts })
  }

  report(failure?: Failure): void {
    const pause = this.#meter.take()
    const fresh = this.#coverage?.takeNew() ?? 0
    const { rss } = process.memoryUsage()
    process.send!({ fresh, pause, rss, ...(failure && { failure }) })
    this.#meter.skip()
  }

  /** Runs each input that the parent sends and reports the result. */
  serve<Input>(run: (input: Input) => Promise<Failure | undefined>): void {
    process.on('message', ({ input }: { input: Input }) => {
      this.#meter.take()
      run(input).then(
        (failure) => this.report(failure),
        (error) => this.report({ kind: 'wrong-error', detail: describe(error) }),
      )
    })
  }
}

export function describe(error: unknown): string {
  if (!(error instanceof Error)) return `thrown: ${String(error)}`
  return (error.stack ?? String(error)).split('\n').slice(0, 4).join('\n')
}
