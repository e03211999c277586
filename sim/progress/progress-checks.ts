import type { Lock, LockOptions } from 'leasehold'
import type { LeaseStore } from 'leasehold/port'
import { Locker } from '../actors/locker.js'
import type { Resource } from '../actors/resource.js'
import type { Harness } from '../world/harness.js'

/**
 * Checks for a healed world; each world runs one of them. What a client asks for must happen within
 * the time that messages and writes take, and not too early.
 */
export const PROGRESS_CHECKS = {
  /** A lease that is renewed all the time is broken with a period: it ends when that is over. */
  'broken lease': async (context) => {
    const { harness } = context
    const store = harness.store(context.last.node)
    const key = 'broken'
    const granted = await store.grant({ holder: 'zed', ttl: 3000, claims: [{ key }] })
    const lease = 'lease' in granted ? granted.lease : ''
    const renew = (): void => {
      store.renew([lease]).catch(() => undefined)
      if (!over) harness.world.after(200, renew)
    }
    let over = false
    renew()
    const [next] = await context.others(1)
    const period = harness.world.random.between(200, 2000)
    const waits = context.lock(next!, key, { wait: 5000 })
    await context.rest(context.slack)
    const asked = harness.world.now
    await store.revoke({ target: { lease }, by: 'zed', why: 'the simulation', after: period })
    await waits
    over = true
    const { serverRate, slowestRate } = harness.truth
    const took = harness.world.now - asked
    context.expectWithin('a key that was broken', took, period / slowestRate + 2 * context.slack)
    if (took < period / serverRate) context.expectWithin('the period of a break', Infinity, period)
  },
  /** A claim on several keys holds when all are free, and gives all of them back. */
  'several keys': async (context) => {
    const [one, other, both] = await context.others(3)
    const first = await context.lock(one!, 'left')
    const second = await context.lock(other!, 'right')
    const waits = context.lock(both!, ['right', 'left'])
    await context.rest(context.slack)
    await first.release()
    await context.rest(context.slack)
    await second.release()
    const released = context.now
    const held = await waits
    context.expectWithin('several keys', context.now - released, context.slack)
    await held.release()
    const again = context.now
    await Promise.all([context.lock(one!, 'left'), context.lock(other!, 'right')])
    context.expectWithin(
      'each of several keys that were given back',
      context.now - again,
      context.slack,
    )
  },
  /** Readers hold together, a writer waits for all of them, and a reader behind it waits for it. */
  'readers and a writer': async (context) => {
    const [one, two, writer, late] = await context.others(4)
    const shared = { mode: 'shared' } as const
    const begun = context.now
    const readers = await Promise.all([
      context.lock(one!, 'page', shared),
      context.lock(two!, 'page', shared),
    ])
    context.expectWithin('a page that two read', context.now - begun, context.slack)
    const writes = context.lock(writer!, 'page')
    await context.rest(context.slack)
    const reads = context.lock(late!, 'page', shared)
    await context.rest(context.slack)
    for (const reader of readers) await reader.release()
    const freed = context.now
    const written = await writes
    context.expectWithin('a page that others read', context.now - freed, context.slack)
    await written.release()
    const again = context.now
    await (await reads).release()
    context.expectWithin('a page that was written', context.now - again, context.slack)
  },
  /** A client that closes releases what it held. */
  'closed client': async (context) => {
    const [one, next] = await context.others(2)
    await context.lock(one!, 'closed')
    const waits = context.lock(next!, 'closed')
    await context.rest(context.slack)
    const begun = context.now
    await one!.leasehold.close()
    await waits
    context.expectWithin('the key of a client that was closed', context.now - begun, context.slack)
  },
  /** A lock under another client's lease ends with that lease, and its holder is notified. */
  'under a parent': async (context) => {
    const [above, below, next] = await context.others(3)
    const parent = (await context.lock(above!, 'above')).lease
    const child = await context.lock(below!, 'below', { parent, ttl: 3000 })
    const waits = context.lock(next!, 'below')
    await context.rest(context.slack)
    const begun = context.now
    await context
      .store(above!)
      .revoke({ target: { lease: parent }, by: 'zed', why: 'the simulation' })
    await waits
    context.expectWithin(
      'the key of a lease under one that was revoked',
      context.now - begun,
      context.slack,
    )
    await context.rest(context.slack)
    const notified = child.state === 'lost' ? 0 : Infinity
    context.expectWithin('the notice that the lease above is gone', notified, context.slack)
  },
  /** A waiter that gives up does not get the key. */
  'aborted waiter': async (context) => {
    const [holder, leaves, next] = await context.others(3)
    const held = await context.lock(holder!, 'wanted', { ttl: 3000 })
    const controller = new AbortController()
    const left = context
      .lock(leaves!, 'wanted', { signal: controller.signal })
      .catch(() => undefined)
    await context.rest(context.slack)
    const waits = context.lock(next!, 'wanted')
    await context.rest(context.slack)
    controller.abort()
    await left
    await context.rest(context.slack)
    await held.release()
    const begun = context.now
    await waits
    context.expectWithin('the key behind one who left', context.now - begun, context.slack)
  },
  /** A holder is notified of a break at once, with its author and reason, and stops in time. */
  'notified of a break': async (context) => {
    const [one] = await context.others(1)
    const held = await context.lock(one!, 'notified', { ttl: 3000 })
    const period = 1000
    let notified = Infinity
    // The notice arrives by the lease's own watch, which must be open.
    await context.rest(context.slack)
    const begun = context.now
    one!.leasehold.on('broken', ({ by, why, remaining }) => {
      if (by === 'zed' && why === 'the simulation' && remaining <= period)
        notified = context.now - begun
    })
    const target = { lease: held.lease }
    await context.store(one!).revoke({ target, by: 'zed', why: 'the simulation', after: period })
    await context.rest(context.slack)
    context.expectWithin('the notice of a break', notified, 2 * context.slack)
    await context.rest(
      period / context.harness.truth.slowestRate + begun + context.slack - context.now,
    )
    context.expectWithin('the end of a broken lock', held.state === 'lost' ? 0 : Infinity, period)
  },
  /** Like `notified of a break`, but the notice is lost: the next renewal reports the break. */
  'lost notice of a break': async (context) => {
    const { network, world } = context.harness
    const [one, next] = await context.others(2)
    const server = context.harness.servers.of(one!.node)
    const { lease } = await one!.take('unheard', 1500)
    network.cut(server.node, one!.node)
    const revoked = { target: { lease }, by: 'zed', why: 'the simulation', after: 1600 }
    await context.store(next!).revoke(revoked)
    world.after(600, () => network.heal(server.node, one!.node))
    await next!.take('unheard', 1000)
  },
  /** Over a stream: what is tied to a connection ends soon after the death of its process. */
  'tied client': async (context) => {
    const [one, next] = await context.others(2)
    const held = await context.lock(one!, 'tied', { ttl: 3000 })
    const { stream } = context.harness.leases.get(held.lease)!
    const begun = context.now
    one!.node.crash()
    if (stream === undefined) return
    await context.lock(next!, 'tied')
    context.expectWithin(
      'the key of a tied client that died',
      context.now - begun,
      NOTICED_MS + context.slack,
    )
  },
  /** Claims are removed by prefix. Their holder is notified, and its lease lives on. */
  'revoked prefix': async (context) => {
    const [one, next] = await context.others(2)
    const taken = await context.lock(one!, ['tree/leaf', 'bark'], { ttl: 3000 })
    const kept = await context.lock(one!, 'stone', { ttl: 3000 })
    const waits = context.lock(next!, 'tree/leaf').catch(() => undefined)
    await context.rest(context.slack)
    const begun = context.now
    const target = { prefix: 'tree/' }
    const store = context.store(one!)
    await store.revoke({ target, by: 'zed', why: 'the simulation' })
    await context.rest(context.slack)
    context.expectWithin(
      'the notice of a claim that was taken',
      taken.state === 'lost' ? 0 : Infinity,
      0,
    )
    context.expectWithin('what was not taken', kept.state === 'held' ? 0 : Infinity, 0)
    await waits
    await context.lock(next!, ['bark', 'tree/leaf'])
    context.expectWithin('keys of which one was taken', context.now - begun, 4 * context.slack)
  },
} as const satisfies Record<string, (context: CheckContext) => Promise<void>>

export type ProgressCheckName = keyof typeof PROGRESS_CHECKS

const WAIT_MS = 4000
/** The time until a broken connection is noticed, plus the longest linger. */
const NOTICED_MS = 400 + 560
const NAMES = ['zac', 'zoe', 'zia', 'zap']

/** What a progress check needs of the world. */
export class CheckContext {
  readonly harness: Harness
  readonly last: Locker
  /** How long messages and writes take at most in a healed world. */
  readonly slack: number
  readonly #resource: Resource

  constructor(harness: Harness, last: Locker, resource: Resource, slack: number) {
    this.harness = harness
    this.last = last
    this.slack = slack
    this.#resource = resource
  }

  get now(): number {
    return this.harness.world.now
  }

  /** New lockers that have done nothing before. */
  async others(count: number): Promise<Locker[]> {
    const lockers = NAMES.slice(0, count).map(
      (name) => new Locker(this.harness, name, this.#resource, 0),
    )
    await Promise.all(lockers.map((locker) => locker.start()))
    return lockers
  }

  lock(by: Locker, keys: string | readonly string[], options: LockOptions = {}): Promise<Lock> {
    return by.leasehold.lock(keys, { ttl: 1000, wait: WAIT_MS, ...options })
  }

  store({ node }: Locker): LeaseStore {
    return this.harness.store(node)
  }

  rest(ms: number): Promise<void> {
    return new Promise((resolve) => this.harness.world.after(ms, resolve))
  }

  expectWithin(what: string, took: number, bound: number): void {
    this.harness.progressed(what, took, bound)
  }
}
