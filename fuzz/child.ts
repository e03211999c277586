import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Failure } from './failure.ts'

/** What a child reports about one input, or about the time since its last report. */
export interface Report {
  /** The number of parts of the code that ran for the first time. */
  readonly fresh: number
  /** The longest turn of its event loop, in milliseconds of processor time. */
  readonly pause: number
  /** Its memory, in bytes. */
  readonly rss: number
  readonly failure?: Failure | undefined
}

export interface ChildOptions {
  /** The file in `children`, without its ending. */
  readonly name: string
  /** Coverage makes the code slower, so pauses are confirmed without it. */
  readonly coverage: boolean
  readonly more?: readonly string[]
}

/** A limit, because a leak would otherwise take all memory of the machine. */
const HEAP_MB = 768
const ANSWER_MS = 10_000
/** A busy machine may take long to start a process. */
const START_MS = 120_000

/** A process that runs the fuzzed code, so that a crash is a finding and does not end the run. */
export class Child {
  /** Its message when it was ready. */
  ready: Readonly<Record<string, unknown>> = {}
  readonly #process: ChildProcess
  #errors = ''
  #died: Failure | undefined
  #isStopping = false
  #wake = () => {}

  private constructor({ name, coverage, more = [] }: ChildOptions) {
    const file = fileURLToPath(new URL(`children/${name}.js`, import.meta.url))
    this.#process = fork(file, [coverage ? 'coverage' : 'plain', ...more], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      execArgv: [`--max-old-space-size=${HEAP_MB}`],
      serialization: 'json',
    })
    this.#process.stderr!.on('data', (text) => {
      this.#errors = (this.#errors + text).slice(-20_000)
    })
    this.#process.once('close', (code, signal) => {
      if (!this.#isStopping) this.#died ??= crashOf(code, signal, this.#errors)
      this.#wake()
    })
    this.#process.on('error', () => {})
  }

  static async start(options: ChildOptions): Promise<Child> {
    const child = new Child(options)
    const ready = await child.#next(START_MS)
    if ('kind' in ready)
      throw new Error(`${options.name} did not start: ${String(ready['detail'])}`)
    child.ready = ready
    return child
  }

  /** How it ended, if nobody stopped it. */
  get died(): Failure | undefined {
    return this.#died
  }

  /** Sends a message and returns the answer; a failure if there is none. */
  async ask(message: object): Promise<Report> {
    if (this.#died) return { fresh: 0, pause: 0, rss: 0, failure: this.#died }
    this.#process.send(message, () => {})
    const answer = await this.#next(ANSWER_MS)
    if ('kind' in answer)
      return { fresh: 0, pause: 0, rss: 0, failure: answer as unknown as Failure }
    return answer as unknown as Report
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const gone = once(this.#process, 'exit')
    this.#process.kill('SIGKILL')
    await gone
  }

  /** The next message; a failure if none arrives. */
  #next(timeoutMs: number): Promise<Record<string, unknown>> {
    return new Promise((resolve) => {
      const finish = (answer: Record<string, unknown>) => {
        clearTimeout(timer)
        this.#process.off('message', finish as never)
        this.#wake = () => {}
        resolve(answer)
      }
      const timer = setTimeout(() => {
        const detail = `no answer for ${timeoutMs} ms`
        this.#died = { kind: 'hang', detail }
        finish({ ...this.#died })
      }, timeoutMs)
      this.#wake = () => finish({ ...(this.#died ?? { kind: 'crash', detail: 'it was stopped' }) })
      this.#process.once('message', finish as never)
    })
  }
}

function crashOf(code: number | null, signal: string | null, errors: string): Failure {
  const isMemory = /heap out of memory/.test(errors)
  const lines = errors
    .split('\n')
    .filter((line) => /\S/.test(line) && !/^\s+\^|^Node\.js/.test(line))
  const first = lines.findIndex((line) => /Error|FATAL/.test(line))
  const excerpt = lines.slice(Math.max(0, first), Math.max(0, first) + 4).join('\n')
  const how = code === null ? `signal ${signal}` : `exit code ${code}`
  return { kind: isMemory ? 'memory' : 'crash', detail: `${excerpt}\n(${how})` }
}
