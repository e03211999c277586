import { judge } from './judge.ts'
import { type Driver, Run } from './run.ts'
import type { Tick } from './schedule.ts'

/**
 * Runs a schedule on the stores of a driver, with many concurrent calls. Fails if no order of the
 * calls explains the answers, the notices of the watches, and the final state: see `judge`.
 */
export async function compareConcurrently<Fault>(
  open: () => Promise<Driver<Fault>>,
  schedule: readonly Tick<Fault>[],
): Promise<void> {
  const driver = await open()
  const run = new Run(driver)
  try {
    for (const tick of schedule) await run.tick(tick)
    await run.finish()
  } finally {
    await driver.close()
  }
  judge(run.history, driver.rules)
}
