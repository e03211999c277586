import type { Log } from '../../log/index.ts'
import { appending, closing, following, type LogCase, snapshots, tails, trimming } from './cases.ts'
import { Recorder } from './recorder.ts'

export interface LogConformanceOptions {
  /**
   * Makes a new, empty log that nothing else uses; called once for each case. Its `open` opens that
   * same log, each time like another process.
   */
  readonly create: () => Promise<CreatedLog>
  /** How long to wait for an entry before a case fails, in milliseconds. Default: 15 seconds. */
  readonly timeout?: number | undefined
  /** The names of cases to skip, each with the reason. */
  readonly exempt?: Readonly<Record<string, string>> | undefined
}

export interface CreatedLog {
  open(): Promise<Log>
  /** Called after the case, when all logs have been closed. */
  remove?(): Promise<void>
}

export interface LogConformanceCase {
  readonly name: string
  /** Why this case is skipped, or `undefined`. */
  readonly skip: string | undefined
  run(): Promise<void>
}

const TOPICS = { appending, following, tails, trimming, snapshots, closing }

/**
 * What every log must do, as cases for any test runner:
 *
 * ```ts
 * for (const { name, run, skip } of logConformance({ create })) it.skipIf(skip)(name, run)
 * ```
 *
 * It does not test failures of the engine: that takes the real engine, and faults.
 */
export function logConformance(options: LogConformanceOptions): LogConformanceCase[] {
  const { exempt = {} } = options
  const cases = Object.entries(TOPICS).flatMap(([topic, bodies]) =>
    Object.entries(bodies).map(([name, body]) => ({ name: `${topic}: ${name}`, body })),
  )
  for (const [name, reason] of Object.entries(exempt)) {
    if (!cases.some((each) => each.name === name)) throw new Error(`there is no case '${name}'`)
    if (reason.trim() === '') throw new Error(`the exemption of '${name}' has no reason`)
  }
  return cases.map(({ name, body }) => ({
    name,
    skip: exempt[name],
    run: () => runCase(options, body),
  }))
}

async function runCase(options: LogConformanceOptions, body: LogCase): Promise<void> {
  const created = await options.create()
  const logs: Log[] = []
  const followers: Recorder[] = []
  try {
    await body({
      open: async () => {
        const log = await created.open()
        logs.push(log)
        return log
      },
      follow: (log, after) => {
        const follower = new Recorder(log, after, options.timeout ?? 15_000)
        followers.push(follower)
        return follower
      },
    })
  } finally {
    for (const follower of followers) follower.close()
    for (const log of logs) await log.close()
    await created.remove?.()
  }
}
