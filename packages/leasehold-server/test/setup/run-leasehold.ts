import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterFile } from '../../../leasehold/test/setup/after-file.ts'

export const BIN = fileURLToPath(new URL('../../bin/leasehold.js', import.meta.url))

export interface Ran {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  /** Another installed program. Default: the one of this repository. */
  readonly bin?: string | undefined
  readonly cwd?: string | undefined
  readonly env?: Readonly<Record<string, string>> | undefined
  readonly input?: string | undefined
}

/** A running `leasehold` process: its output so far, and how it ends. */
export interface Running {
  readonly child: ChildProcess
  stdout: string
  stderr: string
  readonly ended: Promise<Ran>
  /** Fulfilled when its output matches. */
  printed(pattern: RegExp): Promise<void>
}

export function startLeasehold(args: readonly string[], options: RunOptions = {}): Running {
  // The environment of the test run must not change what is tested.
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('LEASEHOLD_'))
  const child = spawn(process.execPath, [options.bin ?? BIN, ...args], {
    cwd: options.cwd,
    env: { ...Object.fromEntries(own), ...options.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  // A failed test may leave it running.
  afterFile(() => child.kill('SIGKILL'))
  child.stdin.on('error', () => {})
  child.stdin.end(options.input ?? '')
  const waiting = new Set<() => void>()
  const running: Running = {
    child,
    stdout: '',
    stderr: '',
    ended: once(child, 'close').then(([code, signal]) => {
      for (const look of [...waiting]) look()
      const { stdout, stderr } = running
      return { code, signal, stdout, stderr }
    }),
    printed: (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const text = running.stdout + running.stderr
          const isThere = pattern.test(text)
          if (!isThere && child.exitCode === null && child.signalCode === null) return
          waiting.delete(look)
          if (isThere) resolve()
          else reject(new Error(`it ended without ${pattern}: ${text}`))
        }
        waiting.add(look)
        look()
      }),
  }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]!.on('data', (text) => {
      running[name] += text
      for (const look of [...waiting]) look()
    })
  }
  return running
}

export function runLeasehold(args: readonly string[], options?: RunOptions): Promise<Ran> {
  return startLeasehold(args, options).ended
}
