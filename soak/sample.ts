import { readdirSync } from 'node:fs'

/** The resources of a process after a full garbage collection. */
export interface ProcessSample {
  readonly rssMb: number
  readonly heapMb: number
  /** Timers, sockets and requests in the event loop. */
  readonly resources: number
  /** Open files and sockets. */
  readonly descriptors: number
  /** Processor time since the start of the process, in seconds. */
  readonly cpu: number
}

const MB = 1 << 20

/** Answers each message of the parent with a sample. Needs --expose-gc. */
export function answerSamples(): void {
  process.on('message', () => process.send!(sampleOf()))
  process.on('disconnect', () => process.exit())
}

function sampleOf(): ProcessSample {
  // The second collection frees what only objects of the first one referred to.
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
