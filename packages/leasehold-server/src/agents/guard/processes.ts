import { readFileSync } from 'node:fs'

/** How many processes above this one are looked at. */
const ANCESTORS_MAX = 16
/** Programs that run another one for an agent host. */
const LAUNCHER = /^(\S*\/)?(npm|npx|pnpm|yarn|bun|bunx|node|env|sh|bash|dash|zsh)(\s|$)/
const RUNS_THIS = /(^|[\s/])leasehold(\.js)?\s+mcp(\s|$)/

interface Parent {
  readonly pid: number
  readonly command: string
}

/** The processes above a process, the nearest first. */
export async function ancestorsOf(pid: number): Promise<Parent[]> {
  const found: Parent[] = []
  let at = await parentOf(pid)
  // In a container the agent host may be process 1.
  for (; at !== undefined; at = await parentOf(at)) {
    found.push({ pid: at, command: await commandOf(at) })
    if (found.length === ANCESTORS_MAX) break
  }
  return found
}

/** The agent host that started this `leasehold mcp`, directly or through npx or a shell. */
export async function hostOf(pid: number): Promise<number | undefined> {
  return (await ancestorsOf(pid)).find(({ command }) => !isLauncher(command))?.pid
}

/** Whether a process only runs `leasehold mcp`, as npx does by `sh -c 'leasehold' mcp`. */
export function isLauncher(command: string): boolean {
  return LAUNCHER.test(command) && RUNS_THIS.test(command.replaceAll(/['"]/g, ''))
}

async function parentOf(pid: number): Promise<number | undefined> {
  if (process.platform !== 'linux') return Number(await ps(pid, 'ppid=')) || undefined
  // The name of the program, in parentheses, may contain anything.
  const fields = read(`/proc/${pid}/stat`).split(') ').at(-1)?.split(' ')
  return Number(fields?.[1]) || undefined
}

async function commandOf(pid: number): Promise<string> {
  if (process.platform !== 'linux') return ps(pid, 'command=')
  return read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim()
}

async function ps(pid: number, column: string): Promise<string> {
  // Loaded only if there is no /proc: a guard must start quickly.
  const { execFileSync } = await import('node:child_process')
  try {
    return execFileSync('ps', ['-o', column, '-p', String(pid)], { encoding: 'utf8' }).trim()
  } catch {
    return ''
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
