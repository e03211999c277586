import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { homedir, tmpdir } from 'node:os'
import { basename, delimiter, join } from 'node:path'
import { describe, it } from 'vitest'

/**
 * Real servers for tests. Each test file starts its own, on a free port of the loopback address, with
 * its data in a temporary folder; kills and restarts it as it likes; and stops it at the end.
 * `scripts/engines.sh` installs them.
 */
export interface EngineSpec {
  readonly name: string
  /** The program to start; `undefined` where it is not on this machine. */
  readonly program: string | undefined
  /** What scripts/go-engines.sh builds it with. A machine without that need not have it. */
  readonly builtWith?: 'go'
  /** The system's user to run it as, for a program that refuses to be run by root. */
  readonly user?: string
  /** Its children do its work. */
  readonly forks?: true
  /** Makes the data that it starts with. */
  readonly prepare?: (folder: string, user: User) => void
  readonly args: (folder: string, port: number) => readonly string[]
  /** A line of its output that says that it is ready. */
  readonly ready: RegExp
}

/** As `spawn` wants it; empty for the user who runs the tests. */
export interface User {
  readonly uid?: number
  readonly gid?: number
}

/** How long a start may take, on a machine that is busy with something else. */
const START_MS = 60_000
const TAKEN = /address already in use/i

/** Whoever runs the tests may be killed: the engine then ends with them, where the system can do that. */
const setpriv = findProgram('setpriv')
const WITH_US = setpriv === undefined ? [] : [setpriv, '--pdeathsig', 'KILL']

export class Engine {
  readonly folder: string
  port = 0
  readonly #spec: EngineSpec
  readonly #user: User
  #process: ChildProcess | undefined
  readonly #lastResort = () => this.#process?.kill('SIGKILL')

  constructor(spec: EngineSpec) {
    this.#spec = spec
    this.#user = userOf(spec)
    this.folder = mkdtempSync(join(tmpdir(), `leasehold-${spec.name}-`))
    const { uid, gid } = this.#user
    if (uid !== undefined && gid !== undefined) chownSync(this.folder, uid, gid)
    process.once('exit', this.#lastResort)
  }

  /** A new one, started. */
  static async start(spec: EngineSpec): Promise<Engine> {
    const engine = new Engine(spec)
    try {
      spec.prepare?.(engine.folder, engine.#user)
      await engine.#startOnFreePort()
      return engine
    } catch (error) {
      await engine.stop()
      throw error
    }
  }

  /** Ends it without letting it tidy up: `SIGKILL`, or what this engine knows as a crash. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const child = this.#process
    this.#process = undefined
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
  }

  /** Sends it a signal that does not end it, such as `SIGSTOP`. */
  signal(signal: NodeJS.Signals): void {
    this.#process?.kill(signal)
  }

  /** Stops it in its tracks, with the children that do its work, and returns when all stand still. */
  async freeze(): Promise<void> {
    for (const pid of this.#pids()) {
      signalTo(pid, 'SIGSTOP')
      while (runs(pid)) await new Promise((resolve) => setImmediate(resolve))
    }
  }

  thaw(): void {
    for (const pid of this.#pids()) signalTo(pid, 'SIGCONT')
  }

  /** Starts it again, on the same port with the same data. */
  async restart(): Promise<void> {
    const said = await this.#run()
    if (said !== undefined) throw new Error(`${this.#spec.name} does not start:\n${said}`)
  }

  async stop(): Promise<void> {
    await this.kill()
    process.off('exit', this.#lastResort)
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
  }

  #pids(): number[] {
    const pid = this.#process!.pid!
    if (!this.#spec.forks) return [pid]
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    return [pid, ...children.split(' ').filter(Boolean).map(Number)]
  }

  /** Between finding a free port and taking it somebody else may have taken it. */
  async #startOnFreePort(): Promise<void> {
    let said: string | undefined
    for (let attempt = 0; attempt < 5; attempt++) {
      this.port = await freePort()
      said = await this.#run()
      if (said === undefined) return
      if (!TAKEN.test(said)) break
    }
    throw new Error(`${this.#spec.name} does not start:\n${said}`)
  }

  /** Fulfilled when it is ready, or with what it said before it ended. */
  #run(): Promise<string | undefined> {
    const { program, args, ready } = this.#spec
    const command = [...WITH_US, program!, ...args(this.folder, this.port)]
    const child = spawn(command[0]!, command.slice(1), {
      ...this.#user,
      cwd: this.folder,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#process = child
    return new Promise((resolve, reject) => {
      let said = ''
      const late = setTimeout(() => child.kill('SIGKILL'), START_MS)
      const hear = (text: Buffer) => {
        said += text
        if (!ready.test(said)) return
        clearTimeout(late)
        resolve(undefined)
      }
      child.stdout!.on('data', hear)
      child.stderr!.on('data', hear)
      child.once('error', reject)
      child.once('exit', () => resolve(said))
      child.once('exit', () => clearTimeout(late))
      late.unref()
      child.unref()
    })
  }
}

/**
 * A group of tests that need an engine. Where it is missing they are left out, which is printed with
 * the reason; continuous integration must have it, so there that is a failure.
 */
export function describeWith(spec: EngineSpec, name: string, tests: () => void): void {
  if (spec.program !== undefined) {
    describe(name, tests)
    return
  }
  const { builtWith } = spec
  const canBeHad = builtWith === undefined || findProgram(builtWith) !== undefined
  const reason = canBeHad
    ? `${spec.name} is not on this machine: scripts/engines.sh installs it`
    : `${spec.name} is built with ${builtWith}, which is not on this machine`
  if (process.env['CI'] === 'true' && canBeHad) {
    describe(name, () => {
      it('has its engine', () => {
        throw new Error(reason)
      })
    })
    return
  }
  console.warn(`left out: ${name}, because ${reason}`)
  describe.skipIf(spec.program === undefined)(`${name} (${reason})`, tests)
}

/** The first of these folders, or of those where programs usually are, that has the program. */
export function findProgram(name: string, folders: readonly string[] = []): string | undefined {
  const usual = (process.env['PATH'] ?? '').split(delimiter)
  return [...folders, ...usual].map((folder) => join(folder, name)).find((path) => existsSync(path))
}

/** The program that scripts/go-engines.sh has built, the newest if there are several. */
export function findBuilt(name: string): string | undefined {
  const caches = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache')
  const folder = process.env['LEASEHOLD_ENGINES'] ?? join(caches, 'leasehold', 'engines')
  return foldersIn(folder).find((path) => basename(path).startsWith(`${name}-`))
}

/** What is in a folder, the last by name first; nothing if it is not there. */
export function foldersIn(folder: string): string[] {
  if (!existsSync(folder)) return []
  const names = readdirSync(folder).sort((a, b) => b.localeCompare(a, 'en', { numeric: true }))
  return names.map((name) => join(folder, name))
}

/** A child may end at any moment. */
function signalTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** Whether it is neither stopped nor ended. */
function runs(pid: number): boolean {
  const file = `/proc/${pid}/stat`
  return existsSync(file) && !/\) [TZX] /.test(readFileSync(file, 'utf8'))
}

/** Only root can be, and need be, another user. */
function userOf({ user }: EngineSpec): User {
  if (user === undefined || process.getuid?.() !== 0) return {}
  const id = (flag: string) => Number(execFileSync('id', [flag, user], { encoding: 'utf8' }))
  return { uid: id('-u'), gid: id('-g') }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address ? address.port : 0
}
