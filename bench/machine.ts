import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'

/** Where and when figures were taken. */
export interface Machine {
  readonly on: string
  readonly commit: string
  readonly node: string
  readonly processors: string
  readonly memory: string
  readonly system: string
  /** How busy the machine was with other things at the end; 1 is one core. */
  readonly load: number
}

export function machine(): Machine {
  const [first] = cpus()
  return {
    on: new Date().toISOString().slice(0, 10),
    commit: commit(),
    node: process.version,
    processors: `${cpus().length} x ${first?.model.trim() ?? 'unknown'}`,
    memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    system: `Linux ${release().split('-')[0]}`,
    load: Number(readFileSync('/proc/loadavg', 'utf8').split(' ')[0]),
  }
}

function commit(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
  } catch {
    return 'unknown'
  }
}
