import { type ChildProcess, spawn } from 'node:child_process'
import { constants } from 'node:os'
import { isLeaseholdError } from 'leasehold/port'
import { Exit, RUN_EXIT } from '../exit-codes.ts'
import { STOP_SIGNALS, stopSignal } from '../stop-signal.ts'

/**
 * A command that runs while something is held. It gets its own process group, so that a signal also
 * reaches its children; but not at a terminal, because such a group could not read from it.
 */
export class Child {
  /** Resolves with its exit code as a shell reports it. */
  readonly exited: Promise<number>
  readonly #process: ChildProcess
  readonly #isGroup: boolean
  #isOver = false

  constructor(commandLine: readonly string[], environment: Readonly<Record<string, string>>) {
    const [file, ...args] = commandLine
    this.#isGroup = process.stdin.isTTY !== true && process.platform !== 'win32'
    const pass = (signal: NodeJS.Signals) => {
      // At a terminal the command receives the interrupt itself.
      if (signal !== 'SIGINT' || this.#isGroup) this.signal(signal)
    }
    // Listen before the start: a signal in between would end this process and leave the command.
    for (const signal of STOP_SIGNALS) process.on(signal, pass)
    this.#process = spawn(file!, args, {
      stdio: 'inherit',
      env: { ...process.env, ...environment },
      detached: this.#isGroup,
    })
    this.exited = new Promise<number>((resolve, reject) => {
      this.#process.once('error', (error: NodeJS.ErrnoException) => {
        const isMissing = error.code === 'ENOENT'
        const code = isMissing ? RUN_EXIT.notFound : RUN_EXIT.notExecutable
        reject(new Exit(code, `${file} ${isMissing ? 'was not found' : 'is not executable'}`))
      })
      this.#process.once('exit', (code, signal) => {
        resolve(code ?? RUN_EXIT.signal + constants.signals[signal!])
      })
    }).finally(() => {
      this.#isOver = true
      for (const signal of STOP_SIGNALS) process.off(signal, pass)
    })
  }

  /** Sends a signal to the command and its children. */
  signal(signal: NodeJS.Signals): void {
    const { pid } = this.#process
    if (pid === undefined || this.#isOver) return
    try {
      process.kill(this.#isGroup ? -pid : pid, signal)
    } catch (error) {
      // The command has just ended.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}

/** Acquires with `acquire`; a timeout and a stop signal exit with their own codes. */
export async function acquireOrExit<Held>(
  acquire: (signal: AbortSignal) => Promise<Held>,
): Promise<Held> {
  const stop = stopSignal()
  try {
    return await acquire(stop.signal)
  } catch (error) {
    if (stop.signal.aborted) throw stop.signal.reason
    if (isLeaseholdError(error, 'timeout')) throw new Exit(RUN_EXIT.notAcquired, error.message)
    throw error
  } finally {
    stop.end()
  }
}

export function requireCommand(commandLine: readonly string[]): readonly string[] {
  if (commandLine.length > 0) return commandLine
  throw new Exit(RUN_EXIT.failed, "the command is missing: add it after '--', as in -- make deploy")
}
