import type { SimNode } from 'leasehold/testing'
import { Locker } from './actors/locker.js'
import type { Cast } from './cast.js'
import { FINALES, FinaleStage } from './finales.js'
import type { Scene } from './scene.js'

/** How long after the healing everything must work again, beside what leases take to run out. */
const SLACK_MS = 1500
/** What a store in one process promises at most, as its guarantees say: `expiryLateness`. */
const LATENESS_MS = 10
/** Members of a log take turns to propose an expiry, and renewals wait for others to go with them. */
const LOG_MS = 100
const TTL_MS = 700
const LONG_TTL_MS = 3000
/** How long no answer comes, and how long at most it takes a client then to have asked again. */
const LOST_MS = 300
const ASK_AGAIN_MS = 1000
const CUT_OFF_TTL_MS = 2000
/** How long it takes at most to stand in line. */
const IN_LINE_MS = 300
/** What was begun before has come to its end by then. */
const REST_MS = 1000
/** When the last thing happens that must be seen in time, counted from the healing. */
const ANNOUNCED_MS = 8000
/** When everything that nobody renews has run out, counted from the healing. */
const RUN_OUT_MS = 9500

/** One dies with a lock, and another must get it in time; and one of the other things is tried. */
export function checkProgress(scene: Scene, cast: Cast): void {
  const { world, faults } = scene
  const [first, second] = cast.lockers as readonly [Locker, Locker]
  const last = cast.lockers[cast.lockers.length - 1]!
  for (const actor of [...cast.lockers, ...cast.callers, ...cast.others]) actor.stop()
  // What was held in the time of trouble runs out first, on the slowest clock, after a restart.
  const leftovers = (3000 + 400) * (1 + faults.drift) + SLACK_MS
  const notAtAll = (what: string, error: unknown): void =>
    scene.progressed(`${what} (${error})`, Infinity, 0)
  world.after(ANNOUNCED_MS, () => scene.lastAnnouncement())
  world.after(RUN_OUT_MS, () => {
    lookAround(scene, last.node).catch((error) => world.fail(error))
  })
  world.after(leftovers, () => {
    takeOver(scene, first, second).catch((error) => notAtAll('the key of one who died', error))
    const { finale } = scene.casting
    if (finale === 'revocation') {
      revoke(scene, last).catch((error) => notAtAll('the news of a revocation', error))
    } else if (finale === 'lost answer') {
      world.after(REST_MS, () => {
        const next = new Locker(scene, 'zoe', cast.resource, 0)
        loseAnswer(scene, last, next).catch((error) =>
          notAtAll('a lock whose answer was lost', error),
        )
      })
    } else if (finale === 'dead in line') {
      const dies = new Locker(scene, 'zac', cast.resource, 0)
      const next = new Locker(scene, 'zoe', cast.resource, 0)
      passOver(scene, last, dies, next).catch((error) => notAtAll('a key behind a dead', error))
    } else if (finale !== 'old keys') {
      const stage = new FinaleStage(scene, last, cast.resource, slackOf(scene))
      FINALES[finale](stage).catch((error) => notAtAll(finale, error))
    } else {
      for (const old of ['job', 'report', 'doc', 'gpu']) {
        last.once(old, 4000).then(
          (took) => scene.progressed(`${old}, held in the time of trouble,`, took, 400),
          (error) => notAtAll(old, error),
        )
      }
    }
  })
}

/**
 * The answer to a claim is lost; the client asks again, and finds that it has what it asked for.
 * Then it is cut off: it must have stopped believing when the next one is told, though it heard
 * long after the store had begun to count.
 */
async function loseAnswer(scene: Scene, one: Locker, next: Locker): Promise<void> {
  const { network, world } = scene
  const server = scene.servers.of(one.node)
  const begun = world.now
  network.cut(server.node, one.node)
  world.after(LOST_MS, () => network.heal(server.node, one.node))
  await one.take('asked twice', CUT_OFF_TTL_MS)
  scene.progressed('a lock whose answer was lost', world.now - begun, LOST_MS + ASK_AGAIN_MS)
  network.cut(one.node, server.node)
  network.cut(server.node, one.node)
  await next.start()
  await next.take('asked twice', TTL_MS)
  network.heal(one.node, server.node)
  network.heal(server.node, one.node)
}

/** One who stands in line dies, and the key goes to the one behind, as if they had never stood there. */
async function passOver(scene: Scene, holder: Locker, dies: Locker, next: Locker): Promise<void> {
  const { world, faults } = scene
  const key = 'line'
  await dies.start()
  await next.start()
  const lives = 2 * IN_LINE_MS + TTL_MS / (1 - faults.drift) + slackOf(scene)
  world.after(IN_LINE_MS, () => {
    dies.waitAndDie(key, TTL_MS, IN_LINE_MS).catch((error) => world.fail(error))
  })
  const standBehind = async (): Promise<number> => {
    await new Promise<void>((resolve) => world.after(2 * IN_LINE_MS, resolve))
    const asked = world.now
    return asked + (await next.once(key, 4000))
  }
  const letGo = holder.takeFor(key, LONG_TTL_MS, lives).then(() => world.now)
  const [released, held] = await Promise.all([letGo, standBehind()])
  scene.progressed('the key behind one who died in line', held - released, slackOf(scene))
}

/** A lease is revoked, and its holder hears of it without having to ask. */
async function revoke(scene: Scene, one: Locker): Promise<void> {
  const { world } = scene
  const { lease, lost } = await one.take('revoked', LONG_TTL_MS)
  const begun = world.now
  await scene.store(one.node).revoke({ target: { lease }, by: 'the simulation' })
  const bound = slackOf(scene)
  world.after(bound, () => {
    const took = lost() ? world.now - begun : Infinity
    scene.progressed('the news of a revocation', took, 2 * bound)
  })
}

/** Two writes at the most, each of which may need a new segment, and a message each way. */
function slackOf({ casting, faults: { disk, link } }: Scene): number {
  const messages = 4 * 2 * link.delay[0]
  if (casting.store === 'memory') return LATENESS_MS + messages
  if (casting.store === 'log') return LATENESS_MS + LOG_MS + 2 * messages
  return LATENESS_MS + 4 * 2 * disk.sync[0] + messages
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
  const bound = TTL_MS / (1 - faults.drift) + slackOf(scene)
  scene.progressed('the key of one who died', world.now - died, bound)
}
