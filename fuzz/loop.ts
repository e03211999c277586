import { relative } from 'node:path'
import type { Report } from './child.ts'
import { Corpus } from './corpus.ts'
import { type Failure, signatureOf } from './failure.ts'
import { Random } from './random.ts'
import type { Runner, Target } from './target.ts'

/** A server that is busy for this long makes its clients wait. */
export const PAUSE_MS = 100
/** A pause counts only if it repeats each time. */
const CONFIRMATIONS = 3
const CORPUS_MAX = 1000
/** After this many different failures, more would add nothing. */
const FAILURES_MAX = 30

export interface Summary {
  readonly target: string
  readonly inputs: number
  /** Inputs that reached new code, and the number of parts of the code that were reached. */
  readonly corpus: number
  readonly covered: number
  readonly failures: number
  readonly longestPause: number
}

/** Runs inputs on a target until the time is over. Changes inputs that reach new code further. */
export class FuzzRun<Input> {
  readonly #target: Target<Input>
  readonly #stored: Corpus<Input>
  readonly #random: Random
  readonly #corpus: Input[] = []
  readonly #known = new Set<string>()
  #runner: Runner<Input> | undefined
  #plain: Runner<Input> | undefined
  #inputs = 0
  #covered = 0
  #reached = 0
  #longestPause = 0

  /** `folder` contains the corpus, the found inputs and the failures. */
  constructor(target: Target<Input>, seed: number, folder: string) {
    this.#target = target
    this.#stored = new Corpus(folder, target.name)
    this.#random = new Random(seed)
  }

  async run(milliseconds: number): Promise<Summary> {
    const end = performance.now() + milliseconds
    const random = this.#random
    try {
      this.#runner = await this.#target.start(true)
      for (const input of this.#stored.read()) await this.#try(input, true)
      while (performance.now() < end && this.#known.size < FAILURES_MAX) {
        const isNew = this.#corpus.length === 0 || random.oneIn(8)
        await this.#try(isNew ? this.#target.generate(random) : this.#changed(), false)
      }
    } finally {
      await this.#runner?.stop()
      await this.#plain?.stop()
    }
    return {
      target: this.#target.name,
      inputs: this.#inputs,
      corpus: this.#reached,
      covered: this.#covered,
      failures: this.#known.size,
      longestPause: Math.round(this.#longestPause),
    }
  }

  /** Runs one input that failed before a few times. Returns whether it still fails. */
  async replay(input: Input): Promise<boolean> {
    try {
      this.#runner = await this.#target.start(false)
      for (let round = 0; round < CONFIRMATIONS; round++) await this.#try(input, true)
    } finally {
      await this.#runner?.stop()
      await this.#plain?.stop()
    }
    return this.#known.size > 0
  }

  /** A changed input, mostly one of the newest, because these have just reached new code. */
  #changed(): Input {
    const random = this.#random
    const corpus = this.#corpus
    const newest = corpus.length - random.size(corpus.length)
    let input: Input = corpus[Math.max(0, newest)]!
    const changes = 1 + random.below(4)
    for (let change = 0; change < changes; change++) {
      input = this.#target.mutate(input, random.pick(corpus), random)
    }
    return input
  }

  async #try(input: Input, isSeed: boolean): Promise<void> {
    const report = await this.#runner!.run(input)
    this.#inputs++
    const failure = await this.#confirmed(input, report)
    if (failure !== undefined) {
      this.#failed(input, failure)
      return
    }
    this.#covered += report.fresh
    if (report.fresh === 0 && !isSeed) return
    if (report.fresh > 0) this.#reached++
    if (this.#corpus.length >= CORPUS_MAX) this.#corpus.splice(this.#random.below(CORPUS_MAX), 1)
    this.#corpus.push(input)
    if (!isSeed) this.#stored.keep(input)
  }

  /** Repeats slow inputs without coverage, which slows the code. The shortest pause counts. */
  async #confirmed(input: Input, { failure, pause }: Report): Promise<Failure | undefined> {
    const isSlow = failure?.kind === 'hang' || failure?.kind === 'lost-lock' || pause > PAUSE_MS
    if (!isSlow) {
      this.#longestPause = Math.max(this.#longestPause, pause)
      return failure
    }
    if (failure && this.#known.has(signatureOf(failure))) return failure
    this.#plain ??= await this.#target.start(false)
    let shortest = Infinity
    for (let round = 0; round < CONFIRMATIONS && shortest > PAUSE_MS; round++) {
      const again = await this.#plain.run(input)
      if (again.failure) return again.failure
      shortest = Math.min(shortest, again.pause)
    }
    this.#longestPause = Math.max(this.#longestPause, shortest)
    if (shortest <= PAUSE_MS) return undefined
    return { kind: 'pause', detail: `the event loop was busy for ${Math.round(shortest)} ms` }
  }

  #failed(input: Input, failure: Failure): void {
    const signature = signatureOf(failure)
    if (this.#known.has(signature)) return
    this.#known.add(signature)
    const file = relative(process.cwd(), this.#stored.saveFailure(input))
    const json = JSON.stringify(input)
    const shown = json.length > 500 ? `${json.slice(0, 500)}… (${json.length} characters)` : json
    process.stdout.write(
      `\n${this.#target.name}: ${failure.kind}: ${failure.detail}\n` +
        `  input:  ${shown}\n` +
        `  replay: npm run fuzz -- ${this.#target.name} --replay ${file}\n`,
    )
  }
}
