import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { homedir, tmpdir } from 'node:os'
import { basename, delimiter, join } from 'node:path'
import { describe, it } from 'vitest'

/**
 * Real servers for tests. Each test file starts its own server on a free loopback port, with its data
 * in a temporary folder. The test may kill and restart it, and stops it at the end.
 * `scripts/engines.sh` installs the servers.
 */
export interface EngineSpec {
  readonly name: string
  /** The program to start; `undefined` if it is not on this machine. */
  readonly program: string | undefined
  /**
   * The tool with which scripts/go-engines.sh or scripts/python-engines.sh gets it. A machine without
   * the tool need not have it.
   */
  readonly builtWith?: 'go' | 'pip3'
  /** The system user that runs it, for a program that refuses to run as root. */
  readonly user?: string
  /** Its child processes do its work. */
  readonly forks?: true
  /** Creates the data that it starts with. */
  readonly prepare?: (folder: string, user: User) => void
  readonly args: (folder: string, port: number) => readonly string[]
  /** Matches its output when it is ready. */
  readonly ready: RegExp
}

/** For `spawn`; empty for the user who runs the tests. */
export interface User {
  readonly uid?: number
  readonly gid?: number
}

/** How long a start may take on a busy machine. */
const START_MS = 60_000
const TAKEN = /address already in use/i

/** If the test process is killed, the system also kills the engine, if it has `setpriv`. */
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

  /** Creates and starts an engine. */
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

  /** Ends it without a clean shutdown: `SIGKILL`, or the signal that this engine treats as a crash. */
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

  /** Freezes it and its child processes, and returns when all are stopped. */
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
    const output = await this.#run()
    if (output !== undefined) throw new Error(`${this.#spec.name} does not start:\n${output}`)
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

  /** Tries several ports, because another process may take a free port first. */
  async #startOnFreePort(): Promise<void> {
    let output: string | undefined
    for (let attempt = 0; attempt < 5; attempt++) {
      this.port = await freePort()
      output = await this.#run()
      if (output === undefined) return
      if (!TAKEN.test(output)) break
    }
    throw new Error(`${this.#spec.name} does not start:\n${output}`)
  }

  /** Fulfilled when it is ready, or with its output if it ended before. */
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
      let output = ''
      const late = setTimeout(() => child.kill('SIGKILL'), START_MS)
      const receive = (bytes: Buffer) => {
        output += bytes
        if (!ready.test(output)) return
        clearTimeout(late)
        resolve(undefined)
      }
      child.stdout!.on('data', receive)
      child.stderr!.on('data', receive)
      child.once('error', reject)
      child.once('exit', () => resolve(output))
      child.once('exit', () => clearTimeout(late))
      late.unref()
      child.unref()
    })
  }
}

/**
 * A group of tests that need an engine. If it is missing, the tests are skipped and the reason is
 * printed. In continuous integration a missing engine is a failure.
 */
export function describeWith(spec: EngineSpec, name: string, tests: () => void): void {
  if (spec.program !== undefined) {
    describe(name, tests)
    return
  }
  const { builtWith } = spec
  const canInstall = builtWith === undefined || findProgram(builtWith) !== undefined
  const reason = canInstall
    ? `${spec.name} is not on this machine: scripts/engines.sh installs it`
    : `${spec.name} is installed with ${builtWith}, which is not on this machine`
  if (process.env['CI'] === 'true' && canInstall) {
    describe(name, () => {
      it('has its engine', () => {
        throw new Error(reason)
      })
    })
    return
  }
  console.warn(`skipped: ${name}, because ${reason}`)
  describe.skipIf(spec.program === undefined)(`${name} (${reason})`, tests)
}

/** Finds a program in these folders, or in those of PATH. */
export function findProgram(name: string, folders: readonly string[] = []): string | undefined {
  const usual = (process.env['PATH'] ?? '').split(delimiter)
  return [...folders, ...usual].map((folder) => join(folder, name)).find((path) => existsSync(path))
}

/** The newest program of this name that scripts/go-engines.sh or scripts/python-engines.sh made. */
export function findBuilt(name: string): string | undefined {
  const caches = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache')
  const folder = process.env['LEASEHOLD_ENGINES'] ?? join(caches, 'leasehold', 'engines')
  return foldersIn(folder).find((path) => basename(path).startsWith(`${name}-`))
}

/** The content of a folder, in descending order; empty if the folder does not exist. */
export function foldersIn(folder: string): string[] {
  if (!existsSync(folder)) return []
  const names = readdirSync(folder).sort((a, b) => b.localeCompare(a, 'en', { numeric: true }))
  return names.map((name) => join(folder, name))
}

/** Sends a signal to a process, which may have ended. */
function signalTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** Whether a process is neither stopped nor ended. */
function runs(pid: number): boolean {
  const file = `/proc/${pid}/stat`
  return existsSync(file) && !/\) [TZX] /.test(readFileSync(file, 'utf8'))
}

/** Only root can, and needs to, run it as another user. */
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
