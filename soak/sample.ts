import { readdirSync } from 'node:fs'

/** What a process uses, after a full garbage collection. */
export interface ProcessSample {
  readonly rssMb: number
  readonly heapMb: number
  /** Timers, sockets and requests that the event loop knows of. */
  readonly resources: number
  /** Open files and sockets. */
  readonly descriptors: number
  /** Processor time since the process began, in seconds. */
  readonly cpu: number
}

const MB = 1 << 20

/** Answers each message of the parent with a sample. Needs --expose-gc. */
export function answerSamples(): void {
  process.on('message', () => process.send!(sampleOf()))
  process.on('disconnect', () => process.exit())
}

function sampleOf(): ProcessSample {
  // What the first collection finds dead may hold what only the second can free.
  globalThis.gc!()
  globalThis.gc!()
  const { rss, heapUsed } = process.memoryUsage()
  const { user, system } = process.cpuUsage()
  return {
    rssMb: rss / MB,
    heapMb: heapUsed / MB,
    resources: process.getActiveResourcesInfo().length,
    descriptors: descriptorsOf(),
    cpu: (user + system) / 1e6,
  }
}

function descriptorsOf(): number {
  try {
    return readdirSync('/proc/self/fd').length
  } catch {
    return 0
  }
}
