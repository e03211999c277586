import type { SeedResult } from '../run-seed.js'
import { cache } from './cache.js'
import type { MakeDrama } from './drama.js'
import { election } from './election.js'
import { pool } from './pool.js'
import { registry } from './registry.js'
import { session } from './session.js'
import { Stage } from './stage.js'

/** How long things go wrong, and how long the healed system is then watched. */
const TROUBLE_MS = 20_000
const HEALED_MS = 30_000
const LOOK_EVERY_MS = 20

export const RECIPES: Readonly<Record<string, MakeDrama>> = {
  election,
  pool,
  registry,
  session,
  cache,
}

/** One world in which a recipe is used, from beginning to end. */
export async function runRecipe(name: string, seed: number, trace = false): Promise<SeedResult> {
  const stage = new Stage(seed, trace)
  const { world } = stage
  try {
    await play(stage, RECIPES[name]!)
  } catch (error) {
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
    stage.violations.push({ checker: 'no code fails', message, time: world.elapsed })
  }
  const { violations, acts } = stage
  const { hash, trace: lines } = world
  return { seed, violations, hash, trace: lines, held: acts, calls: acts, lateness: -Infinity }
}

async function play(stage: Stage, make: MakeDrama): Promise<void> {
  const { world } = stage
  await stage.begin()
  const begin = world.now
  const drama = make(stage)
  const look = (): void => {
    drama.look()
    world.after(LOOK_EVERY_MS, look)
  }
  look()
  stage.makeTrouble(begin + TROUBLE_MS)
  await world.run(begin + TROUBLE_MS)
  stage.heal()
  drama.healed()
  await world.run(begin + TROUBLE_MS + HEALED_MS)
  drama.finish()
}
