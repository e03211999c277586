import type { SeedResult } from '../run-seed.js'
import { cache } from './cache.js'
import { election } from './election.js'
import { RecipeHarness } from './harness.js'
import { pool } from './pool.js'
import { registry } from './registry.js'
import type { MakeScenario } from './scenario.js'
import { session } from './session.js'

/** How long faults happen, and how long the healed system is then checked. */
const FAULTS_MS = 20_000
const HEALED_MS = 30_000
const CHECK_EVERY_MS = 20

export const RECIPES: Readonly<Record<string, MakeScenario>> = {
  election,
  pool,
  registry,
  session,
  cache,
}

/** One world with a recipe, from start to end. */
export async function runRecipe(name: string, seed: number, trace = false): Promise<SeedResult> {
  const harness = new RecipeHarness(seed, trace)
  const { world } = harness
  try {
    await play(harness, RECIPES[name]!)
  } catch (error) {
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
    harness.violations.push({ checker: 'no code fails', message, time: world.elapsed })
  }
  const { violations, operations } = harness
  const { hash, trace: lines } = world
  return {
    seed,
    violations,
    hash,
    trace: lines,
    held: operations,
    calls: operations,
    lateness: -Infinity,
  }
}

async function play(harness: RecipeHarness, make: MakeScenario): Promise<void> {
  const { world } = harness
  await harness.begin()
  const begin = world.now
  const scenario = make(harness)
  const check = (): void => {
    scenario.check()
    world.after(CHECK_EVERY_MS, check)
  }
  check()
  harness.planFaults(begin + FAULTS_MS)
  await world.run(begin + FAULTS_MS)
  harness.heal()
  scenario.healed()
  await world.run(begin + FAULTS_MS + HEALED_MS)
  scenario.finish()
}
