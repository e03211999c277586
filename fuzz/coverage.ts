import { type InspectorNotification, type Profiler, Session } from 'node:inspector'

export type { InspectorNotification }

/**
 * The parts of Leasehold that have run, as V8 counts them. A part is new if it runs for the first
 * time, or for the first time about twice, four or eight times in one input.
 */
export class Coverage {
  readonly #session = new Session()
  readonly #seen = new Set<string>()

  start(): void {
    this.#session.connect()
    this.#session.post('Profiler.enable')
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  }

  /** The number of new parts since the last call. */
  takeNew(): number {
    let fresh = 0
    this.#session.post('Profiler.takePreciseCoverage', (error, taken) => {
      if (error === null) for (const script of taken.result) fresh += this.#add(script)
    })
    return fresh
  }

  #add({ url, functions }: Profiler.ScriptCoverage): number {
    if (!/\/packages\/leasehold(-server)?\/dist\//.test(url)) return 0
    const file = url.slice(url.indexOf('/packages/'))
    const before = this.#seen.size
    for (const { ranges } of functions) {
      for (const { startOffset, endOffset, count } of ranges) {
        if (count === 0) continue
        this.#seen.add(
          `${file} ${startOffset} ${endOffset} ${Math.min(5, Math.ceil(Math.log2(count + 1)))}`,
        )
      }
    }
    return this.#seen.size - before
  }
}
