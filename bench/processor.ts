import { readdirSync, readFileSync } from 'node:fs'

/** What Linux counts processor time in, everywhere. */
const TICK_US = 10_000

/**
 * Microseconds of processor time that a process and all that it started have had: an engine such as
 * PostgreSQL does its work in processes of its own. Those that have ended are counted by their parent.
 */
export function cpuTime(pid: number): number {
  let fields: string[]
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  } catch {
    return 0
  }
  const own = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0) * TICK_US
  return childrenOf(pid).reduce((sum, child) => sum + cpuTime(child), own)
}

/** Bytes of memory that a process has in use. */
export function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024
}

function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((task) => {
      const text = readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8')
      return text.split(' ').filter(Boolean).map(Number)
    })
  } catch {
    return []
  }
}
