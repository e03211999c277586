import { startActors, type Worlds } from './actors/actors.js'
import type { Violation } from './checkers/checker.js'
import { heal, planFaults } from './faults/fault-plan.js'
import { checkProgress } from './progress/progress.js'
import { Harness } from './world/harness.js'

/** How long faults happen, and how long the healed system is checked then: 30 s in all. */
const FAULTS_MS = 20_000
const HEALED_MS = 10_000

export interface SeedResult {
  readonly seed: number
  readonly violations: readonly Violation[]
  readonly hash: number
  readonly trace: readonly string[]
  /** How many times a client held, and how many calls were answered: a world must not be idle. */
  readonly held: number
  readonly calls: number
  /** How long after the expiry of a dead holder's lease the next one held, in milliseconds. */
  readonly lateness: number
}

/** One world from beginning to end. */
export async function runSeed(
  seed: number,
  trace = false,
  worlds: Worlds = 'server',
): Promise<SeedResult> {
  const harness = new Harness(seed, trace, worlds)
  const { world } = harness
  try {
    await play(harness)
  } catch (error) {
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
    harness.violations.push({ checker: 'no code fails', message, time: world.elapsed })
  }
  const { violations, held, calls, lateness } = harness
  const { hash } = world
  return { seed, violations, hash, trace: world.trace, held, calls: calls.length, lateness }
}

async function play(harness: Harness): Promise<void> {
  const { world } = harness
  const begin = world.now
  // The servers start before the first call. Their start is part of the world's time.
  harness.startServers()
  await world.run(begin + 1500)
  // A disk that fails at the first start delays it.
  while (!harness.servers.areServing) await world.run(world.now + 1500)
  const actors = startActors(harness)
  planFaults(harness, actors, begin + FAULTS_MS)
  await world.run(begin + FAULTS_MS)
  heal(harness, actors)
  checkProgress(harness, actors)
  await world.run(begin + FAULTS_MS + HEALED_MS)
  harness.finish()
}
