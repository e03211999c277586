import type { Lock, LockOptions } from 'leasehold'
import type { LeaseStore } from 'leasehold/port'
import { Locker } from './actors/locker.js'
import type { Resource } from './actors/resource.js'
import type { Scene } from './scene.js'

/**
 * What is tried in a healed world, each in a few of them: what was asked for happens, within the
 * time that messages and writes take, and no sooner than it may.
 */
export const FINALES = {
  /** A lease that is renewed all the time is broken with a period: it ends when that is over. */
  'broken lease': async (stage) => {
    const { scene } = stage
    const store = scene.store(stage.last.node)
    const key = 'broken'
    const granted = await store.grant({ holder: 'zed', ttl: 3000, claims: [{ key }] })
    const lease = 'lease' in granted ? granted.lease : ''
    const renew = (): void => {
      store.renew([lease]).catch(() => undefined)
      if (!over) scene.world.after(200, renew)
    }
    let over = false
    renew()
    const [next] = await stage.others(1)
    const period = scene.world.random.between(200, 2000)
    const waits = stage.lock(next!, key, { wait: 5000 })
    await stage.rest(stage.slack)
    const asked = scene.world.now
    await store.revoke({ target: { lease }, by: 'zed', why: 'the simulation', after: period })
    await waits
    over = true
    const { serverRate, slowestRate } = scene.truth
    const took = scene.world.now - asked
    stage.within('a key that was broken', took, period / slowestRate + 2 * stage.slack)
    if (took < period / serverRate) stage.within('the period of a break', Infinity, period)
  },
  /** A claim on several keys holds when all are free, and gives all of them back. */
  'several keys': async (stage) => {
    const [one, other, both] = await stage.others(3)
    const first = await stage.lock(one!, 'left')
    const second = await stage.lock(other!, 'right')
    const waits = stage.lock(both!, ['right', 'left'])
    await stage.rest(stage.slack)
    await first.release()
    await stage.rest(stage.slack)
    await second.release()
    const released = stage.now
    const held = await waits
    stage.within('several keys', stage.now - released, stage.slack)
    await held.release()
    const again = stage.now
    await Promise.all([stage.lock(one!, 'left'), stage.lock(other!, 'right')])
    stage.within('each of several keys that were given back', stage.now - again, stage.slack)
  },
  /** Readers hold together, a writer waits for all of them, and a reader behind it waits for it. */
  'readers and a writer': async (stage) => {
    const [one, two, writer, late] = await stage.others(4)
    const shared = { mode: 'shared' } as const
    const begun = stage.now
    const readers = await Promise.all([
      stage.lock(one!, 'page', shared),
      stage.lock(two!, 'page', shared),
    ])
    stage.within('a page that two read', stage.now - begun, stage.slack)
    const writes = stage.lock(writer!, 'page')
    await stage.rest(stage.slack)
    const reads = stage.lock(late!, 'page', shared)
    await stage.rest(stage.slack)
    for (const reader of readers) await reader.release()
    const freed = stage.now
    const written = await writes
    stage.within('a page that others read', stage.now - freed, stage.slack)
    await written.release()
    const again = stage.now
    await (await reads).release()
    stage.within('a page that was written', stage.now - again, stage.slack)
  },
  /** Whoever closes its client gives back what it held. */
  'closed client': async (stage) => {
    const [one, next] = await stage.others(2)
    await stage.lock(one!, 'closed')
    const waits = stage.lock(next!, 'closed')
    await stage.rest(stage.slack)
    const begun = stage.now
    await one!.leasehold.close()
    await waits
    stage.within('the key of a client that was closed', stage.now - begun, stage.slack)
  },
  /** A lock under another's lease ends with it, and its holder hears of that. */
  'under a parent': async (stage) => {
    const [above, below, next] = await stage.others(3)
    const parent = (await stage.lock(above!, 'above')).lease
    const child = await stage.lock(below!, 'below', { parent, ttl: 3000 })
    const waits = stage.lock(next!, 'below')
    await stage.rest(stage.slack)
    const begun = stage.now
    await stage
      .store(above!)
      .revoke({ target: { lease: parent }, by: 'zed', why: 'the simulation' })
    await waits
    stage.within('the key of a lease under one that was revoked', stage.now - begun, stage.slack)
    await stage.rest(stage.slack)
    const told = child.state === 'lost' ? 0 : Infinity
    stage.within('the news that the lease above is gone', told, stage.slack)
  },
  /** Who gives up waiting is passed over. */
  'impatient waiter': async (stage) => {
    const [holder, leaves, next] = await stage.others(3)
    const held = await stage.lock(holder!, 'wanted', { ttl: 3000 })
    const controller = new AbortController()
    const left = stage.lock(leaves!, 'wanted', { signal: controller.signal }).catch(() => undefined)
    await stage.rest(stage.slack)
    const waits = stage.lock(next!, 'wanted')
    await stage.rest(stage.slack)
    controller.abort()
    await left
    await stage.rest(stage.slack)
    await held.release()
    const begun = stage.now
    await waits
    stage.within('the key behind one who left', stage.now - begun, stage.slack)
  },
  /** Somebody who holds is told of a break at once, by whom and why, and stops in time. */
  'told of a break': async (stage) => {
    const [one] = await stage.others(1)
    const held = await stage.lock(one!, 'told', { ttl: 3000 })
    const period = 1000
    let told = Infinity
    // The news come by the lease's own watch, which must be open.
    await stage.rest(stage.slack)
    const begun = stage.now
    one!.leasehold.on('broken', ({ by, why, remaining }) => {
      if (by === 'zed' && why === 'the simulation' && remaining <= period) told = stage.now - begun
    })
    const target = { lease: held.lease }
    await stage.store(one!).revoke({ target, by: 'zed', why: 'the simulation', after: period })
    await stage.rest(stage.slack)
    stage.within('the news of a break', told, 2 * stage.slack)
    await stage.rest(period / stage.scene.truth.slowestRate + begun + stage.slack - stage.now)
    stage.within('the end of a broken lock', held.state === 'lost' ? 0 : Infinity, period)
  },
  /** The same where the news gets lost: the next renewal tells of it. */
  'unheard break': async (stage) => {
    const { network, world } = stage.scene
    const [one, next] = await stage.others(2)
    const server = stage.scene.servers.of(one!.node)
    const { lease } = await one!.take('unheard', 1500)
    network.cut(server.node, one!.node)
    const revoked = { target: { lease }, by: 'zed', why: 'the simulation', after: 1600 }
    await stage.store(next!).revoke(revoked)
    world.after(600, () => network.heal(server.node, one!.node))
    await next!.take('unheard', 1000)
  },
  /** Over a stream: what is tied to a connection ends soon after the death of its process. */
  'tied client': async (stage) => {
    const [one, next] = await stage.others(2)
    const held = await stage.lock(one!, 'tied', { ttl: 3000 })
    const { line } = stage.scene.leases.get(held.lease)!
    const begun = stage.now
    one!.node.crash()
    if (line === undefined) return
    await stage.lock(next!, 'tied')
    stage.within('the key of a tied client that died', stage.now - begun, NOTICED_MS + stage.slack)
  },
  /** Claims are removed by prefix; their holder hears of it, and its lease lives on. */
  'revoked prefix': async (stage) => {
    const [one, next] = await stage.others(2)
    const taken = await stage.lock(one!, ['tree/leaf', 'bark'], { ttl: 3000 })
    const kept = await stage.lock(one!, 'stone', { ttl: 3000 })
    const waits = stage.lock(next!, 'tree/leaf').catch(() => undefined)
    await stage.rest(stage.slack)
    const begun = stage.now
    const target = { prefix: 'tree/' }
    const store = stage.store(one!)
    await store.revoke({ target, by: 'zed', why: 'the simulation' })
    await stage.rest(stage.slack)
    stage.within('the news of a claim that was taken', taken.state === 'lost' ? 0 : Infinity, 0)
    stage.within('what was not taken', kept.state === 'held' ? 0 : Infinity, 0)
    await waits
    await stage.lock(next!, ['bark', 'tree/leaf'])
    stage.within('keys of which one was taken', stage.now - begun, 4 * stage.slack)
  },
} as const satisfies Record<string, (stage: FinaleStage) => Promise<void>>

export type FinaleName = keyof typeof FINALES

const WAIT_MS = 4000
/** How long it takes until a broken connection is noticed, and the longest linger that is drawn. */
const NOTICED_MS = 400 + 560
const NAMES = ['zac', 'zoe', 'zia', 'zap']

/** What a finale needs of the world. */
export class FinaleStage {
  readonly scene: Scene
  readonly last: Locker
  /** How long messages and writes take at most in a healed world. */
  readonly slack: number
  readonly #resource: Resource

  constructor(scene: Scene, last: Locker, resource: Resource, slack: number) {
    this.scene = scene
    this.last = last
    this.slack = slack
    this.#resource = resource
  }

  get now(): number {
    return this.scene.world.now
  }

  /** So many users of the client that have done nothing before. */
  async others(count: number): Promise<Locker[]> {
    const lockers = NAMES.slice(0, count).map(
      (name) => new Locker(this.scene, name, this.#resource, 0),
    )
    await Promise.all(lockers.map((locker) => locker.start()))
    return lockers
  }

  lock(by: Locker, keys: string | readonly string[], options: LockOptions = {}): Promise<Lock> {
    return by.leasehold.lock(keys, { ttl: 1000, wait: WAIT_MS, ...options })
  }

  store({ node }: Locker): LeaseStore {
    return this.scene.store(node)
  }

  rest(ms: number): Promise<void> {
    return new Promise((resolve) => this.scene.world.after(ms, resolve))
  }

  within(what: string, took: number, bound: number): void {
    this.scene.progressed(what, took, bound)
  }
}
