import type { SeedResult } from './run-seed.js'

const BAR_WIDTH = 30
/** Without a terminal, one line of progress is printed per so many seeds. */
const SEEDS_PER_LINE = 5000

/** The results of many seeds. */
export class SeedTotals {
  readonly failed: SeedResult[] = []
  readonly #count: number
  readonly #start = performance.now()
  readonly #cpu = process.cpuUsage()
  #done = 0
  #lateness = -Infinity
  #hash = 0

  constructor(count: number) {
    this.#count = count
  }

  get done(): number {
    return this.#done
  }

  add(result: SeedResult): void {
    this.#done++
    this.#lateness = Math.max(this.#lateness, result.lateness)
    this.#hash = (Math.imul(this.#hash, 31) + result.hash) >>> 0
    if (result.violations.length > 0) this.failed.push(result)
  }

  showProgress(stream: NodeJS.WriteStream): void {
    const filled = Math.round((this.#done / this.#count) * BAR_WIDTH)
    const bar = '#'.repeat(filled) + '-'.repeat(BAR_WIDTH - filled)
    const line = `[${bar}] ${this.#done} of ${this.#count} seeds, ${this.#rate()} a second, ${this.failed.length} with violations`
    if (stream.isTTY) stream.write(`\r${line}`)
    else if (this.#done % SEEDS_PER_LINE === 0) stream.write(`${line}\n`)
  }

  summary(): string {
    const { user, system } = process.cpuUsage(this.#cpu)
    const cpu = ((user + system) / 1000 / this.#done).toFixed(2)
    return [
      `\n${this.#done - this.failed.length} passed, ${this.failed.length} failed`,
      `${this.#rate()} seeds a second, ${cpu} ms of processor time each`,
      `a dead holder's key was taken over ${this.#lateness.toFixed(1)} ms after its expiry at the latest`,
      `all histories together: ${this.#hash.toString(16)}`,
    ].join('\n')
  }

  /** One line for the tests, and for the run of mutants. */
  json(): string {
    const failed = this.failed.map(({ seed, violations }) => ({
      seed,
      checkers: [...new Set(violations.map(({ checker }) => checker))],
      message: violations[0]?.message,
    }))
    return JSON.stringify({ done: this.#done, hash: this.#hash, lateness: this.#lateness, failed })
  }

  #rate(): string {
    return (this.#done / ((performance.now() - this.#start) / 1000)).toFixed(0)
  }
}
