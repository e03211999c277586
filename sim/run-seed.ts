import { assemble, type Worlds } from './cast.js'
import type { Violation } from './checker.js'
import { checkProgress } from './progress.js'
import { Scene } from './scene.js'
import { heal, makeTrouble } from './trouble.js'

/** How long things go wrong, and how long the healed system is then watched: 30 s in all. */
const TROUBLE_MS = 20_000
const HEALED_MS = 10_000

export interface SeedResult {
  readonly seed: number
  readonly violations: readonly Violation[]
  readonly hash: number
  readonly trace: readonly string[]
  /** How many times somebody held, and how many calls were answered: a world must not be idle. */
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
  const scene = new Scene(seed, trace, worlds)
  const { world } = scene
  try {
    await play(scene)
  } catch (error) {
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
    scene.violations.push({ checker: 'no code fails', message, time: world.elapsed })
  }
  const { violations, held, calls, lateness } = scene
  const { hash } = world
  return { seed, violations, hash, trace: world.trace, held, calls: calls.length, lateness }
}

async function play(scene: Scene): Promise<void> {
  const { world } = scene
  const begin = world.now
  // The server comes up before anyone asks: its start is part of the world's time too.
  scene.startServers()
  await world.run(begin + 1500)
  // A disk that fails at the first start delays it.
  while (!scene.servers.areServing) await world.run(world.now + 1500)
  const cast = assemble(scene)
  makeTrouble(scene, cast, begin + TROUBLE_MS)
  await world.run(begin + TROUBLE_MS)
  heal(scene, cast)
  checkProgress(scene, cast)
  await world.run(begin + TROUBLE_MS + HEALED_MS)
  scene.finish()
}
