import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const MAIN = fileURLToPath(new URL('../../bin/leasehold.js', import.meta.url))

/** `leasehold serve` as a separate process that can be killed, stopped and restarted. */
export class ServerProcess {
  readonly store: string
  readonly #more: readonly string[]
  url = ''
  /** 0 before the first start, then its port. */
  port = 0
  /** All that it printed when it was ready. */
  lines: string[] = []
  /** All that it has written to standard error. */
  errors = ''
  readonly #looks = new Set<() => void>()
  #child: ChildProcess | undefined

  /** `more` are further arguments of `leasehold serve`. */
  constructor(store: string, more: readonly string[] = []) {
    this.store = store
    this.#more = more
  }

  /** Fulfilled when it listens; a restart uses the same port. */
  async start(): Promise<this> {
    const args = ['serve', '--store', this.store, '--port', String(this.port), ...this.#more]
    const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    this.#child = child
    this.errors = ''
    child.stderr?.on('data', (text) => {
      this.errors += text
      for (const look of [...this.#looks]) look()
    })
    this.lines = []
    for await (const line of createInterface({ input: child.stdout! })) {
      this.lines.push(line)
      if (this.lines.length === 3) break
    }
    if (this.lines.length < 3) throw new Error(`the server did not start: ${this.errors}`)
    this.url = /https?:\S+/.exec(this.lines[0]!)![0]
    this.port = Number(new URL(this.url).port)
    return this
  }

  /** While it runs. */
  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** Fulfilled when it has written this to standard error. */
  said(pattern: RegExp): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (!pattern.test(this.errors)) return
        this.#looks.delete(look)
        resolve()
      }
      this.#looks.add(look)
      look()
    })
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal)
  }

  /** Ends it, and answers with its exit code, or the signal that ended it. */
  async end(signal: NodeJS.Signals = 'SIGKILL'): Promise<number | string> {
    const child = this.#child
    if (child === undefined) return 0
    this.#child = undefined
    if (child.exitCode === null && child.signalCode === null) {
      child.kill(signal)
      await once(child, 'exit')
    }
    return child.exitCode ?? child.signalCode!
  }
}

/** A folder for one test file, and its processes; `clean` ends and removes all. */
export class Place {
  readonly #folders: string[] = []
  readonly #servers: ServerProcess[] = []

  async folder(): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'leasehold-server-'))
    this.#folders.push(folder)
    return folder
  }

  /** A server with a store in a new folder, or `memory:`. */
  async server(store?: 'memory:', more: readonly string[] = []): Promise<ServerProcess> {
    return this.serverOn(store ?? `file:${await this.folder()}`, more).start()
  }

  /** A server that is not started yet. */
  serverOn(store: string, more: readonly string[] = []): ServerProcess {
    const server = new ServerProcess(store, more)
    this.#servers.push(server)
    return server
  }

  async clean(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.end()))
    for (const folder of this.#folders) await rm(folder, { recursive: true, force: true })
  }
}
