import { type Hold, Leasehold } from 'leasehold'
import type { LeaseId } from 'leasehold/port'
import type { SeededRandom, SimNode } from 'leasehold/testing'
import type { Holding } from '../history.js'
import type { Scene } from '../scene.js'
import type { Resource } from './resource.js'

const KEYS = ['job', 'report']
/** A key of which several may hold a permit at once, and how many. */
const PERMITS = { key: 'gpu', limit: 2 }

/** A user of the client: takes locks, works under them, sends fenced writes, gives them back. */
export class Locker {
  readonly node: SimNode
  readonly #scene: Scene
  readonly #resource: Resource
  readonly #random: SeededRandom
  readonly #loops: number
  readonly #holdings = new Set<Holding>()
  #leasehold: Leasehold | undefined
  #stopping = false

  /** It takes `loops` locks at a time, as long as there is trouble. */
  constructor(scene: Scene, name: string, resource: Resource, loops: number) {
    this.#loops = loops
    this.#scene = scene
    this.#resource = resource
    this.node = scene.client(name)
    this.#random = this.node.random
  }

  get name(): string {
    return this.node.name
  }

  async start(): Promise<void> {
    const { world } = this.#scene
    this.#leasehold = await Leasehold.open(this.#scene.store(this.node), {
      holder: this.name,
      clock: this.node.clock(),
      random: this.node.random,
      drift: this.#scene.driftBound,
      margin: this.#random.pick([0, 5, undefined]),
      callTimeout: this.#random.pick([200, 600]),
    })
    for (let loop = 0; loop < this.#loops; loop++) {
      world.after(
        this.#random.between(0, 500),
        this.node.guard(() => this.#again()),
      )
    }
  }

  crash(): void {
    if (!this.node.running) return
    this.#scene.world.note(this.name, 'is killed')
    this.node.crash()
    this.#holdings.clear()
    this.#scene.world.after(this.#random.between(10, 4000), () => this.restart())
  }

  restart(): void {
    if (this.node.running || this.#stopping) return
    this.node.start(() => {
      this.start().catch((error) => this.#scene.world.fail(error))
    })
  }

  /** Begins nothing new. */
  stop(): void {
    this.#stopping = true
  }

  /** Takes a lock and gives it back, once; for when the system is whole. */
  async once(key: string, wait: number): Promise<number> {
    const begun = this.#scene.world.now
    const lock = await this.#leasehold!.lock(key, { ttl: 1000, wait })
    const took = this.#scene.world.now - begun
    await lock.release().catch(() => undefined)
    return took
  }

  /** Takes a lock and keeps it. Answers with its lease, and how it stands. */
  async take(key: string, ttl: number): Promise<{ lease: LeaseId; lost: () => boolean }> {
    const invoked = this.#scene.world.now
    const lock = await this.#leasehold!.lock(key, { ttl, wait: 4000 })
    this.#held({ key, limit: 0, ttl, grace: 0, invoked }, lock)
    return { lease: lock.lease, lost: () => lock.state === 'lost' }
  }

  /** Takes a lock and gives it back after a while, without waiting for the answer to that. */
  async takeFor(key: string, ttl: number, ms: number): Promise<void> {
    const lock = await this.#leasehold!.lock(key, { ttl, wait: 4000 })
    await this.#rest(ms)
    lock.release().catch(() => undefined)
  }

  /** Stands in line for a lock, and dies there. */
  async waitAndDie(key: string, ttl: number, ms: number): Promise<void> {
    const { world } = this.#scene
    this.#leasehold!.lock(key, { ttl, wait: 4000 }).catch(() => undefined)
    await new Promise<void>((resolve) => world.after(ms, resolve))
    world.note(this.name, 'dies waiting', () => key)
    this.node.crash()
  }

  /** Takes a lock, and dies with it. */
  async holdAndDie(key: string, ttl: number): Promise<void> {
    await this.#leasehold!.lock(key, { ttl, wait: 10_000 })
    this.#scene.world.note(this.name, 'dies holding', () => key)
    this.node.crash()
  }

  #again(): void {
    if (this.#stopping) return
    this.#work().then(
      () => this.#later(this.#rests(1, 400), () => this.#again()),
      () => this.#later(this.#rests(20, 600), () => this.#again()),
    )
  }

  async #work(): Promise<void> {
    const permit = this.#random.chance(0.25)
    const key = permit ? PERMITS.key : KEYS[this.#random.integer(1, this.#scene.casting.keys) - 1]!
    const limit = permit ? PERMITS.limit : 0
    const ttl = this.#random.pick([500, 2000, 3000, 3000])
    const grace = this.#random.pick([0, 0, 400])
    const invoked = this.#scene.world.now
    const options = {
      ttl,
      grace,
      wait: this.#random.pick([100, 1500, 6000]),
      ...(permit && { mode: 'shared' as const, limit }),
      ...(this.#random.chance(0.1) && { maxHold: 2 * ttl }),
    }
    const hold = await this.#leasehold!.lock(key, options)
    this.#held({ key, limit, ttl, grace, invoked }, hold)
    await this.#use(key, hold)
  }

  #held(
    about: { key: string; limit: number; ttl: number; grace: number; invoked: number },
    hold: Hold,
  ): void {
    const { node, name } = this
    // A lease may be over before its first user gets to look at it; then it was never believed.
    if (!hold.held) return
    const { key, limit, ttl, grace, invoked } = about
    const holding: Holding = {
      key,
      limit,
      ttl,
      grace,
      invoked,
      client: name,
      token: hold.token,
      lease: hold.lease,
      hold,
      told: this.#scene.world.now,
      awake: () => node.running && !node.paused && this.#holdings.has(holding),
      ended: Infinity,
    }
    this.#holdings.add(holding)
    this.#scene.holds(holding)
  }

  /** Works for a while, writing now and then, and gives the lock back, unless it is lost. */
  async #use(key: string, hold: Hold): Promise<void> {
    const end = this.#scene.world.now + this.#random.between(5, 1800)
    while (this.#scene.world.now < end && hold.state !== 'lost' && !this.#stopping) {
      await this.#rest(this.#random.between(10, 1200))
      if (hold.held) this.#resource.write(this.node, key, hold.token)
    }
    if (hold.state === 'lost') await this.#lookAgain(hold)
    for (const holding of this.#holdings) {
      if (holding.hold !== hold) continue
      holding.ended = this.#scene.world.now
      this.#holdings.delete(holding)
    }
    await hold.release().catch(() => undefined)
  }

  /** It stopped its work because the lock was lost: it must not be told then that it is not. */
  async #lookAgain(hold: Hold): Promise<void> {
    await this.#rest(this.#random.between(10, 1000))
    if (hold.state !== 'lost') this.#scene.revived(this.name, hold.state)
  }

  #rests(least: number, most: number): number {
    return this.#random.between(least, most) * this.#scene.casting.leisure
  }

  #rest(ms: number): Promise<void> {
    return new Promise((resolve) => this.#later(ms, resolve))
  }

  #later(ms: number, run: () => void): void {
    this.#scene.world.after(ms, this.node.guard(run))
  }
}
