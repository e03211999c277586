import type { SimNode } from 'leasehold/testing'
import type { Locker } from './actors/locker.js'
import type { Cast } from './cast.js'
import type { Scene } from './scene.js'

/** How long after the healing everything must work again, beside what leases take to run out. */
const SLACK_MS = 1500
/** What a store in one process promises at most, as its guarantees say: `expiryLateness`. */
const LATENESS_MS = 10
const TTL_MS = 700

/** When everything that nobody renews has run out, counted from the healing. */
const RUN_OUT_MS = 9000

/** One dies with a lock, and another must get it in time; and everyone gets their turn. */
export function checkProgress(scene: Scene, cast: Cast): void {
  const { world, faults } = scene
  const [first, second] = cast.lockers as readonly [Locker, Locker]
  const last = cast.lockers[cast.lockers.length - 1]!
  for (const actor of [...cast.lockers, ...cast.callers, ...cast.others]) actor.stop()
  // What was held in the time of trouble runs out first, on the slowest clock, after a restart.
  const leftovers = (3000 + 400) * (1 + faults.drift) + SLACK_MS
  const notAtAll = (what: string, error: unknown): void =>
    scene.progressed(`${what} (${error})`, Infinity, 0)
  world.after(RUN_OUT_MS, () => {
    lookAround(scene, last.node).catch((error) => world.fail(error))
  })
  world.after(leftovers, () => {
    takeOver(scene, first, second).catch((error) => notAtAll('the key of one who died', error))
    for (const old of ['job', 'report', 'gpu']) {
      last.once(old, 4000).then(
        (took) => scene.progressed(`${old}, held in the time of trouble,`, took, 400),
        (error) => notAtAll(old, error),
      )
    }
  })
}

/** Sees which leases are left. */
async function lookAround(scene: Scene, node: SimNode): Promise<void> {
  const read = scene.world.now
  const { leases } = await scene.store(node).read({ leases: true })
  for (const { id } of leases) scene.remains(id, read)
}

async function takeOver(scene: Scene, first: Locker, second: Locker): Promise<void> {
  const { world, faults } = scene
  const key = 'progress'
  const asked = world.now
  await first.holdAndDie(key, TTL_MS)
  const died = world.now
  await second.once(key, 4000)
  // The server granted after it was asked, so it could not end the lease before this.
  const expiry = asked + TTL_MS / scene.truth.serverRate
  scene.tookOver(world.now - expiry)
  // Two writes at the most, each of which may need a new segment, and a message each way.
  const slack = LATENESS_MS + 4 * 2 * faults.disk.sync[0] + 4 * 2 * faults.link.delay[0]
  const bound = TTL_MS / (1 - faults.drift) + slack
  scene.progressed('the key of one who died', world.now - died, bound)
}
