import type { SimNode } from 'leasehold/testing'
import type { Actors } from '../actors/actors.js'
import { Locker } from '../actors/locker.js'
import type { Harness } from '../world/harness.js'
import { CheckContext, PROGRESS_CHECKS } from './progress-checks.js'

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
/** The longest time until a claim is in the queue. */
const QUEUED_MS = 300
/** Earlier operations have ended by then. */
const REST_MS = 1000
/** When the last event happens that all watches must deliver, counted from the healing. */
const ANNOUNCED_MS = 8000
/** When all leases without renewals have expired, counted from the healing. */
const RUN_OUT_MS = 9500

/** A holder dies, and the next waiter must get its key in time. One more check runs beside it. */
export function checkProgress(harness: Harness, actors: Actors): void {
  const { world, faults } = harness
  const [first, second] = actors.lockers as readonly [Locker, Locker]
  const last = actors.lockers[actors.lockers.length - 1]!
  for (const actor of [...actors.lockers, ...actors.callers, ...actors.others]) actor.stop()
  // Leases from the time of faults expire first, on the slowest clock, after a restart.
  const leftovers = (3000 + 400) * (1 + faults.drift) + SLACK_MS
  const neverHappened = (what: string, error: unknown): void =>
    harness.progressed(`${what} (${error})`, Infinity, 0)
  world.after(ANNOUNCED_MS, () => harness.lastAnnouncement())
  world.after(RUN_OUT_MS, () => {
    reportRemaining(harness, last.node).catch((error) => world.fail(error))
  })
  world.after(leftovers, () => {
    takeOver(harness, first, second).catch((error) =>
      neverHappened('the key of a dead holder', error),
    )
    const { finalCheck } = harness.setup
    if (finalCheck === 'revocation') {
      revoke(harness, last).catch((error) => neverHappened('the notice of a revocation', error))
    } else if (finalCheck === 'lost answer') {
      world.after(REST_MS, () => {
        const next = new Locker(harness, 'zoe', actors.resource, 0)
        loseAnswer(harness, last, next).catch((error) =>
          neverHappened('a lock whose answer was lost', error),
        )
      })
    } else if (finalCheck === 'dead waiter') {
      const dies = new Locker(harness, 'zac', actors.resource, 0)
      const next = new Locker(harness, 'zoe', actors.resource, 0)
      passOver(harness, last, dies, next).catch((error) =>
        neverHappened('the key after a waiter died', error),
      )
    } else if (finalCheck !== 'old keys') {
      const context = new CheckContext(harness, last, actors.resource, slackOf(harness))
      PROGRESS_CHECKS[finalCheck](context).catch((error) => neverHappened(finalCheck, error))
    } else {
      for (const old of ['job', 'report', 'doc', 'gpu']) {
        last.once(old, 4000).then(
          (took) => harness.progressed(`${old}, held during the faults,`, took, 400),
          (error) => neverHappened(old, error),
        )
      }
    }
  })
}

/**
 * The answer to a claim is lost. The client asks again and learns that it holds the lock. Then it is
 * cut off. It must stop believing before the next holder is notified, although it received its answer
 * long after the store started to count.
 */
async function loseAnswer(harness: Harness, one: Locker, next: Locker): Promise<void> {
  const { network, world } = harness
  const server = harness.servers.of(one.node)
  const begun = world.now
  network.cut(server.node, one.node)
  world.after(LOST_MS, () => network.heal(server.node, one.node))
  await one.take('asked twice', CUT_OFF_TTL_MS)
  harness.progressed('a lock whose answer was lost', world.now - begun, LOST_MS + ASK_AGAIN_MS)
  network.cut(one.node, server.node)
  network.cut(server.node, one.node)
  await next.start()
  await next.take('asked twice', TTL_MS)
  network.heal(one.node, server.node)
  network.heal(server.node, one.node)
}

/** A waiter dies in the queue, and the key goes to the next waiter. */
async function passOver(
  harness: Harness,
  holder: Locker,
  dies: Locker,
  next: Locker,
): Promise<void> {
  const { world, faults } = harness
  const key = 'line'
  await dies.start()
  await next.start()
  const lives = 2 * QUEUED_MS + TTL_MS / (1 - faults.drift) + slackOf(harness)
  world.after(QUEUED_MS, () => {
    dies.waitAndDie(key, TTL_MS, QUEUED_MS).catch((error) => world.fail(error))
  })
  const waitBehind = async (): Promise<number> => {
    await new Promise<void>((resolve) => world.after(2 * QUEUED_MS, resolve))
    const asked = world.now
    return asked + (await next.once(key, 4000))
  }
  const letGo = holder.takeFor(key, LONG_TTL_MS, lives).then(() => world.now)
  const [released, held] = await Promise.all([letGo, waitBehind()])
  harness.progressed('the key after a waiter died', held - released, slackOf(harness))
}

/** A lease is revoked, and its holder is notified without having to ask. */
async function revoke(harness: Harness, one: Locker): Promise<void> {
  const { world } = harness
  const { lease, lost } = await one.take('revoked', LONG_TTL_MS)
  const begun = world.now
  await harness.store(one.node).revoke({ target: { lease }, by: 'the simulation' })
  const bound = slackOf(harness)
  world.after(bound, () => {
    const took = lost() ? world.now - begun : Infinity
    harness.progressed('the notice of a revocation', took, 2 * bound)
  })
}

/** At most two writes, each with a new segment, and a message each way. */
function slackOf({ setup, faults: { disk, link } }: Harness): number {
  const messages = 4 * 2 * link.delay[0]
  if (setup.store === 'memory') return LATENESS_MS + messages
  if (setup.store === 'log') return LATENESS_MS + LOG_MS + 2 * messages
  return LATENESS_MS + 4 * 2 * disk.sync[0] + messages
}

/** Reports the leases that still exist. */
async function reportRemaining(harness: Harness, node: SimNode): Promise<void> {
  const read = harness.world.now
  const { leases } = await harness.store(node).read({ leases: true })
  for (const { id } of leases) harness.remains(id, read)
}

async function takeOver(harness: Harness, first: Locker, second: Locker): Promise<void> {
  const { world, faults } = harness
  const key = 'progress'
  const asked = world.now
  await first.holdAndDie(key, TTL_MS)
  const died = world.now
  await second.once(key, 4000)
  // The server granted after it was asked, so it could not end the lease before this.
  const expiry = asked + TTL_MS / harness.truth.serverRate
  harness.tookOver(world.now - expiry)
  const bound = TTL_MS / (1 - faults.drift) + slackOf(harness)
  harness.progressed('the key of a dead holder', world.now - died, bound)
}
