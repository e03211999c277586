import { readdirSync, readFileSync } from 'node:fs'

/** Linux counts processor time in ticks of this length. */
const TICK_US = 10_000

/**
 * Microseconds of processor time that a process and its children have used. An engine such as
 * PostgreSQL works in child processes. The parent's figure includes children that have ended.
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

/** The resident memory of a process, in bytes. */
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
