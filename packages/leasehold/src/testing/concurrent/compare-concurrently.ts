import { judge } from './judge.ts'
import { type Driver, Run } from './run.ts'
import type { Tick } from './schedule.ts'

/**
 * Runs a schedule on the stores of a driver, many calls at a time, and fails if no order of the
 * calls explains what the stores answered, what their watches were told and what can be read at the
 * end: see `judge`.
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
