import { Caller } from './actors/caller.js'
import { Locker } from './actors/locker.js'
import { Parent } from './actors/parent.js'
import { Resource } from './actors/resource.js'
import { Watcher } from './actors/watcher.js'
import type { Violation } from './checker.js'
import { Scene } from './scene.js'

/** How long things go wrong, and how long the healed system is then watched: 30 s in all. */
const TROUBLE_MS = 20_000
const HEALED_MS = 10_000
/** How long after the healing everything must work again, beside what leases take to run out. */
const SLACK_MS = 1500

export interface SeedResult {
  readonly seed: number
  readonly violations: readonly Violation[]
  readonly hash: number
  readonly trace: readonly string[]
  /** How many times somebody held, and how many calls were answered: a world must not be idle. */
  readonly held: number
  readonly calls: number
}

/** One world from beginning to end. */
export async function runSeed(seed: number, trace = false): Promise<SeedResult> {
  const scene = new Scene(seed, trace)
  const { world } = scene
  try {
    await play(scene)
  } catch (error) {
    const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
    scene.violations.push({ checker: 'no code fails', message, time: world.elapsed })
  }
  const { violations, holdings, calls } = scene
  const held = holdings.length
  return { seed, violations, hash: world.hash, trace: world.trace, held, calls: calls.length }
}

async function play(scene: Scene): Promise<void> {
  const { world } = scene
  const begin = world.now
  // The server comes up before anyone asks: its start is part of the world's time too.
  scene.startServer().catch((error) => world.fail(error))
  await world.run(begin + 500)
  const cast = assemble(scene)
  makeTrouble(scene, cast, begin + TROUBLE_MS)
  await world.run(begin + TROUBLE_MS)
  heal(scene, cast)
  checkProgress(scene, cast)
  await world.run(begin + TROUBLE_MS + HEALED_MS)
  scene.finish()
}

interface Cast {
  readonly resource: Resource
  readonly lockers: readonly Locker[]
  readonly callers: readonly Caller[]
  readonly parent: Parent
  readonly watchers: readonly Watcher[]
}

function assemble(scene: Scene): Cast {
  const resource = new Resource(scene)
  const lockers = ['ann', 'ben', 'cat'].map((name) => new Locker(scene, name, resource))
  const callers = ['dan', 'eve'].map((name) => new Caller(scene, name))
  const watchers = ['wes', 'wim'].map((name) => new Watcher(scene, name))
  const parent = new Parent(scene, 'pam')
  for (const locker of lockers) locker.start().catch((error) => scene.world.fail(error))
  for (const actor of [...callers, ...watchers, parent]) actor.start()
  return { resource, lockers, callers, parent, watchers }
}

function makeTrouble(scene: Scene, cast: Cast, end: number): void {
  const { world, faults, server, network } = scene
  const { random } = world
  const clients = [...cast.lockers, ...cast.callers]
  const nodes = [...clients.map(({ node }) => node), ...cast.watchers.map(({ node }) => node)]
  const now = world.now
  const several = (times: number, happen: () => void): void => {
    for (let left = times + random.next() - 0.5; left > 0; left--) {
      world.at(random.between(now, end), happen)
    }
  }
  several(faults.serverCrashes, () => scene.crashServer())
  several(faults.clientCrashes, () => random.pick(clients).crash())
  several(faults.resourceRestarts, () => cast.resource.restart())
  several(faults.serverPauses, () => server.node.pause(random.between(10, 2500)))
  several(faults.clientPauses, () => random.pick(nodes).pause(random.between(10, 3000)))
  several(faults.suspends, () => random.pick(nodes).suspend(random.between(300, 4000)))
  several(faults.wallJumps, () =>
    random.pick([server.node, ...nodes]).setWall(random.between(-60_000, 60_000)),
  )
  several(faults.cuts, () => {
    const node = random.pick(nodes)
    const both = random.chance(0.5)
    const outward = random.chance(0.5)
    if (both || outward) network.cut(node, server.node)
    if (both || !outward) network.cut(server.node, node)
    world.note(node.name, both ? 'is cut off' : outward ? 'is not heard' : 'hears nothing')
    world.after(random.between(50, 4000), () => {
      network.heal(node, server.node)
      network.heal(server.node, node)
    })
  })
}

function heal(scene: Scene, cast: Cast): void {
  const { world, network } = scene
  world.note('world', 'is healed')
  network.calm()
  scene.calmDisk()
  scene.restartServer()
  for (const actor of [...cast.lockers, ...cast.callers]) actor.restart()
}

/** One dies with a lock, and another must get it in time; and everyone gets their turn. */
function checkProgress(scene: Scene, cast: Cast): void {
  const { world, faults } = scene
  const [first, second, third] = cast.lockers as [Locker, Locker, Locker]
  for (const actor of [...cast.lockers, ...cast.callers, cast.parent]) actor.stop()
  const ttl = 700
  // What was held in the time of trouble runs out first, on the slowest clock, after a restart.
  const leftovers = (3000 + 400) * (1 + faults.drift) + SLACK_MS
  world.after(leftovers, () => {
    const key = 'progress'
    first.holdAndDie(key, ttl).catch((error) => world.fail(error))
    world.after(300, () => {
      const died = world.now
      second.once(key, 4000).then(
        () =>
          scene.progressed(
            'the key of one who died',
            world.now - died,
            ttl * (1 + 2 * faults.drift) + 250,
          ),
        (error) => world.fail(error),
      )
    })
    for (const old of ['job', 'report', 'gpu']) {
      third.once(old, 4000).then(
        (took) => scene.progressed(`${old}, held in the time of trouble,`, took, 400),
        (error) => world.fail(error),
      )
    }
  })
}
