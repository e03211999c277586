import { type Hold, Leasehold, type Lock, type LockOptions } from 'leasehold'
import type { LeaseId, LeaseStore } from 'leasehold/port'
import type { SeededRandom, SimNode } from 'leasehold/testing'
import type { Holding } from '../checkers/history.js'
import { exercised, recorded } from '../coverage.js'
import type { Harness } from '../world/harness.js'
import { drawLockRequest, type LockRequest } from './lock-request.js'
import type { Resource } from './resource.js'

/** A user of the client: takes locks, works under them, sends fenced writes, releases them. */
export class Locker {
  readonly node: SimNode
  readonly #harness: Harness
  readonly #resource: Resource
  readonly #random: SeededRandom
  readonly #loops: number
  readonly #holdings = new Set<Holding>()
  /** Its leases that may become parents of others. */
  #parents: LeaseId[] = []
  #leasehold: Leasehold | undefined
  #store: LeaseStore | undefined
  #stopping = false

  /** Takes `loops` locks at a time while faults happen. */
  constructor(harness: Harness, name: string, resource: Resource, loops: number) {
    this.#loops = loops
    this.#harness = harness
    this.#resource = resource
    this.node = harness.client(name)
    this.#random = this.node.random
  }

  get name(): string {
    return this.node.name
  }

  get leasehold(): Leasehold {
    return this.#leasehold!
  }

  async start(): Promise<void> {
    const { world } = this.#harness
    await this.#open()
    for (let loop = 0; loop < this.#loops; loop++) {
      world.after(
        this.#random.between(0, 500),
        this.node.guard(() => this.#again()),
      )
    }
  }

  async #open(): Promise<void> {
    const margin = this.#random.pick([0, 5, undefined])
    const callTimeout = this.#random.pick([200, 600])
    const jitter = this.#random.pick([undefined, 0, 0.5])
    const options = {
      holder: this.name,
      clock: this.node.clock(),
      random: this.node.random,
      drift: this.#harness.driftBound,
      margin,
      callTimeout,
      timeout: callTimeout === 200 ? 1500 : undefined,
      jitter,
    }
    exercised('open', options)
    const store = await this.#harness.connect(this.node)
    this.#store = store
    const leasehold = await Leasehold.open(store, options)
    this.#parents = []
    leasehold.on('lost', ({ lease, claims, error }) => {
      const record = this.#harness.leases.get(lease)
      const { reason, by, why } = error
      const keys = claims.map(({ key }) => key)
      if (record) this.#harness.lost({ client: this.name, lease: record, keys, reason, by, why })
    })
    this.#leasehold = recorded('leasehold', leasehold)
  }

  crash(): void {
    if (!this.node.running) return
    this.#harness.world.note(this.name, 'is killed')
    this.node.crash()
    this.#holdings.clear()
    this.#harness.world.after(this.#random.between(10, 4000), () => this.restart())
  }

  restart(): void {
    if (this.node.running || this.#stopping) return
    this.node.start(() => {
      this.start().catch((error) => this.#harness.world.fail(error))
    })
  }

  /** Starts nothing new. */
  stop(): void {
    this.#stopping = true
  }

  /** Takes and releases a lock once, for when the system is healthy. */
  async once(key: string, wait: number): Promise<number> {
    const begun = this.#harness.world.now
    const lock = await this.#leasehold!.lock(key, { ttl: 1000, wait })
    const took = this.#harness.world.now - begun
    await lock.release().catch(() => undefined)
    return took
  }

  /** Takes a lock and keeps it. Returns its lease and its state. */
  async take(key: string, ttl: number): Promise<{ lease: LeaseId; lost: () => boolean }> {
    const invoked = this.#harness.world.now
    const lock = await this.#leasehold!.lock(key, { ttl, wait: 4000 })
    this.#held({ keys: [key], options: {}, ttl, grace: 0, invoked }, lock)
    return { lease: lock.lease, lost: () => lock.state === 'lost' }
  }

  /** Takes a lock and releases it after a while, without waiting for the answer. */
  async takeFor(key: string, ttl: number, ms: number): Promise<void> {
    const lock = await this.#leasehold!.lock(key, { ttl, wait: 4000 })
    await this.#rest(ms)
    lock.release().catch(() => undefined)
  }

  /** Waits for a lock, and dies in the queue. */
  async waitAndDie(key: string, ttl: number, ms: number): Promise<void> {
    const { world } = this.#harness
    this.#leasehold!.lock(key, { ttl, wait: 4000 }).catch(() => undefined)
    await new Promise<void>((resolve) => world.after(ms, resolve))
    world.note(this.name, 'dies waiting', () => key)
    this.node.crash()
  }

  /** Takes a lock, and dies with it. */
  async holdAndDie(key: string, ttl: number): Promise<void> {
    await this.#leasehold!.lock(key, { ttl, wait: 10_000 })
    this.#harness.world.note(this.name, 'dies holding', () => key)
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
    if (this.#random.chance(0.02)) return this.#closeAndOpen()
    const request = drawLockRequest(this.#random, this.#harness.setup.keys, this.#parents)
    const invoked = this.#harness.world.now
    if (request.way === 'with') {
      await this.#leasehold!.withLock(request.keys, request.options, (lock) =>
        this.#begin(request, invoked, lock),
      )
      return
    }
    const hold = await this.#acquire(request)
    if (hold !== undefined) await this.#begin(request, invoked, hold)
  }

  async #begin(request: LockRequest, invoked: number, hold: Lock): Promise<void> {
    const held = recorded('hold', hold)
    if (this.#parents.length < 2) this.#parents.push(held.lease)
    this.#held({ ...request, invoked }, held)
    await this.#use(request, held)
  }

  async #acquire({
    keys,
    options: given,
    way,
    abortAfter,
  }: LockRequest): Promise<Lock | undefined> {
    const leasehold = this.#leasehold!
    const { ties } = this.#store!.guarantees
    const options = { ...given, tied: ties && given.tied }
    const which = keys.length === 1 ? keys[0]! : keys
    if (way === 'try') return (await leasehold.tryLock(which, options)).lock
    if (abortAfter === undefined) return leasehold.lock(which, options)
    const controller = new AbortController()
    this.#later(abortAfter, () => controller.abort())
    return leasehold.lock(which, { ...options, signal: controller.signal })
  }

  /** Releases everything by closing its client, and starts again. */
  async #closeAndOpen(): Promise<void> {
    const leasehold = this.#leasehold!
    for (const holding of this.#holdings) holding.ended = this.#harness.world.now
    this.#holdings.clear()
    // A closed client gets no new calls, but its pending calls end.
    await leasehold.close()
    await this.#store!.close()
    await this.#open()
  }

  #held(
    about: {
      keys: readonly string[]
      options: LockOptions
      ttl: number
      grace: number
      invoked: number
    },
    hold: Hold,
  ): void {
    const { node, name } = this
    // A lease may end before its first user looks at it; then nobody ever believed in it.
    if (!hold.held) return
    const { keys, options, ttl, grace, invoked } = about
    const holding: Holding = {
      ...{ keys, ttl, grace, invoked, hold, client: name },
      shared: options.mode === 'shared',
      limit: options.limit ?? 0,
      token: hold.claimToken,
      lease: hold.lease,
      notified: this.#harness.world.now,
      awake: () => node.running && !node.paused && this.#holdings.has(holding),
      ended: Infinity,
    }
    this.#holdings.add(holding)
    this.#harness.holds(holding)
  }

  /** Works for a while with some writes, and releases the lock unless it is lost. */
  async #use({ keys, options }: LockRequest, hold: Hold): Promise<void> {
    const random = this.#random
    const end = this.#harness.world.now + random.between(5, 1800)
    while (this.#harness.world.now < end && hold.state !== 'lost' && !this.#stopping) {
      await this.#rest(random.between(10, 1200))
      if (!hold.held) continue
      for (const key of keys) this.#resource.write(this.node, key, hold.token)
      this.#alsoUse(hold, options)
    }
    if (hold.state === 'lost') await this.#lookAgain(hold)
    for (const holding of this.#holdings) {
      if (holding.hold !== hold) continue
      holding.ended = this.#harness.world.now
      this.#holdings.delete(holding)
    }
    if (hold.state === 'lost' && random.chance(0.3)) await this.#reclaim(hold, options)
    else if (random.chance(0.2)) await hold[Symbol.asyncDispose]()
    else await hold.release().catch(() => undefined)
  }

  /** Other operations on a held lock. None of them may harm anybody. */
  #alsoUse(hold: Hold, { strategy }: LockOptions): void {
    const random = this.#random
    const dice = random.next()
    hold.assertHeld()
    if (hold.remaining() > 0 && hold.signal.aborted) {
      this.#harness.progressed('a lock that is held and whose signal is aborted', Infinity, 0)
    }
    if (strategy === 'session') hold.touch()
    if (strategy !== 'cache' && dice < 0.15) hold.renew().catch(() => undefined)
    else if (dice < 0.25)
      hold.update(`at ${this.#harness.world.now}`, random.pick(hold.keys)).catch(() => undefined)
    else if (dice < 0.3) {
      this.#leasehold!.lock(hold.key, { within: hold }).then(
        (inner) => this.#leaveInner(inner, hold),
        () => undefined,
      )
    }
  }

  /** After releasing an inner lock, the client still holds the outer one. */
  async #leaveInner(inner: Lock, outer: Hold): Promise<void> {
    const { state } = outer
    await inner.release().catch(() => undefined)
    if (state === 'held' && outer.state === 'released' && !this.#stopping) {
      const isOwn = [...this.#holdings].some(({ hold }) => hold === outer)
      if (isOwn) this.#harness.progressed('an outer lock after its inner one', Infinity, 0)
    }
  }

  /** Takes a lost lock back, if nobody else has held it since. */
  async #reclaim(lost: Hold, options: LockOptions): Promise<void> {
    const invoked = this.#harness.world.now
    const { mode, limit } = options
    const asked = { ttl: 1000, ...(mode && { mode }), ...(limit && { limit }) }
    const { lock } = await this.#leasehold!.reclaim(lost, asked)
    if (lock === undefined) return
    this.#harness.reclaimed(lost.keys, lost.claimToken, lock.claimToken)
    this.#held({ keys: lock.keys, options, ttl: 1000, grace: 0, invoked }, lock)
    await this.#use({ keys: lock.keys, options, ttl: 1000, grace: 0, way: 'lock' }, lock)
  }

  /** It stopped its work because the lock was lost: from then on the lock must stay lost. */
  async #lookAgain(hold: Hold): Promise<void> {
    await this.#rest(this.#random.between(10, 1000))
    if (hold.state !== 'lost') this.#harness.revived(this.name, hold.state)
  }

  #rests(least: number, most: number): number {
    return this.#random.between(least, most) * this.#harness.setup.restFactor
  }

  #rest(ms: number): Promise<void> {
    return new Promise((resolve) => this.#later(ms, resolve))
  }

  #later(ms: number, run: () => void): void {
    this.#harness.world.after(ms, this.node.guard(run))
  }
}
