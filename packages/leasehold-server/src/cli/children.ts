import { type ChildProcess, spawn } from 'node:child_process'
import { constants } from 'node:os'
import { isLeaseholdError } from 'leasehold/port'
import { Exit, RUN_EXIT } from './exit-codes.ts'

/** Signals that are passed on to the command, so that stopping us stops it. */
const PASSED_ON = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/**
 * A command that runs while something is held. It gets a group of its own, so that what it has
 * started is stopped with it; but not at a terminal, which such a group could not read from.
 */
export class Child {
  /** Fulfilled with its exit code as a shell would tell it. */
  readonly exited: Promise<number>
  readonly #process: ChildProcess
  readonly #isGroup: boolean
  #isOver = false

  constructor(commandLine: readonly string[], environment: Readonly<Record<string, string>>) {
    const [file, ...args] = commandLine
    this.#isGroup = process.stdin.isTTY !== true && process.platform !== 'win32'
    const pass = (signal: NodeJS.Signals) => {
      // At a terminal it has had the interrupt already.
      if (signal !== 'SIGINT' || this.#isGroup) this.signal(signal)
    }
    // Before it is started: a signal that comes between the two would end us, and leave it running.
    for (const signal of PASSED_ON) process.on(signal, pass)
    this.#process = spawn(file!, args, {
      stdio: 'inherit',
      env: { ...process.env, ...environment },
      detached: this.#isGroup,
    })
    this.exited = new Promise<number>((resolve, reject) => {
      this.#process.once('error', (error: NodeJS.ErrnoException) => {
        const isMissing = error.code === 'ENOENT'
        const code = isMissing ? RUN_EXIT.notFound : RUN_EXIT.notExecutable
        reject(new Exit(code, `${file} ${isMissing ? 'was not found' : 'cannot be executed'}`))
      })
      this.#process.once('exit', (code, signal) => {
        resolve(code ?? RUN_EXIT.signal + constants.signals[signal!])
      })
    }).finally(() => {
      this.#isOver = true
      for (const signal of PASSED_ON) process.off(signal, pass)
    })
  }

  /** Sends a signal to it and to what it has started. */
  signal(signal: NodeJS.Signals): void {
    const { pid } = this.#process
    if (pid === undefined || this.#isOver) return
    try {
      process.kill(this.#isGroup ? -pid : pid, signal)
    } catch (error) {
      // It has just ended.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
    }
  }
}

/** Aborted when this process is told to stop, with the signal; until `end` is called. */
export function stopSignal(): { readonly signal: AbortSignal; end(): void } {
  const controller = new AbortController()
  const stop = (name: NodeJS.Signals) => {
    controller.abort(new Exit(RUN_EXIT.signal + constants.signals[name]))
  }
  for (const name of PASSED_ON) process.on(name, stop)
  return {
    signal: controller.signal,
    end: () => {
      for (const name of PASSED_ON) process.off(name, stop)
    },
  }
}

/** Waits for what is to be held; what ends the wait has a code of its own. */
export async function acquired<Held>(
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

export function commandOf(commandLine: readonly string[]): readonly string[] {
  if (commandLine.length > 0) return commandLine
  throw new Exit(RUN_EXIT.failed, "there is no command: write it behind '--', as in -- make deploy")
}
