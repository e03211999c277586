import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const BIN = fileURLToPath(new URL('../../../leasehold-server/bin/leasehold.js', import.meta.url))

/** `leasehold serve` on an engine, as a separate process. */
export class Served {
  readonly url: string
  readonly said: readonly string[]
  readonly #process: ChildProcess

  private constructor(child: ChildProcess, said: readonly string[]) {
    this.#process = child
    this.said = said
    this.url = /http:\S+/.exec(said[0]!)![0]
  }

  /** Fails with the output of the server if it did not start. */
  static async on(address: string, settings: NodeJS.ProcessEnv = {}, port = 0): Promise<Served> {
    const child = spawn(process.execPath, [BIN, 'serve', '--port', String(port)], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, LEASEHOLD_STORE: address, LEASEHOLD_LOG_LEVEL: 'error', ...settings },
    })
    let errors = ''
    child.stderr.on('data', (text) => {
      errors += text
    })
    const said: string[] = []
    for await (const line of createInterface({ input: child.stdout })) {
      if (said.push(line) === 3) return new Served(child, said)
    }
    throw new Error(`the server did not start: ${errors}`)
  }

  get port(): number {
    return Number(new URL(this.url).port)
  }

  /** Sends it a signal that does not end it, such as `SIGSTOP`. */
  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal)
  }

  async end(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    this.#process.kill(signal)
    await once(this.#process, 'exit')
  }
}
