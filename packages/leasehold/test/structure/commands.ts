import { execFile } from 'node:child_process'

export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** A program that hangs is killed. Longer than tests take on a busy machine, which have own limits. */
const HANGS_MS = 280_000

/** Runs a program to its end. Never fails by itself: the result says how it ended. */
export function run(
  program: string,
  args: readonly string[],
  cwd: string,
  timeout = HANGS_MS,
  more: Readonly<Record<string, string>> = {},
): Promise<Ran> {
  return new Promise((resolve) => {
    // A test runner marks its environment, and programs should not behave differently for it.
    const { NODE_ENV: _, VITEST: __, NODE_OPTIONS: ___, FORCE_COLOR: ____, ...env } = process.env
    execFile(program, args, { cwd, env: { ...env, ...more }, timeout }, (error, stdout, stderr) => {
      const code = error ? Number(error.code ?? 1) : 0
      resolve({ code, stdout, stderr })
    })
  })
}

export function runNode(
  args: readonly string[],
  cwd: string,
  timeout?: number,
  more?: Readonly<Record<string, string>>,
): Promise<Ran> {
  return run(process.execPath, args, cwd, timeout, more)
}
