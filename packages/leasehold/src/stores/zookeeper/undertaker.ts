import type { End, LeaseId } from '../../port/index.ts'
import type { Ending, Guard } from './ending.ts'
import { Conflict, type Journal } from './journal.ts'
import type { Lessor } from './lessor.ts'
import type { Place } from './line.ts'
import { BUCKETS } from './paths.ts'

const EXPIRED: End = { reason: 'expired' }
const TRIES = 5
/** Many may see the same death: they wait for a random part of this, and most find it done. */
const SPREAD_MS = 100
/** How often one of the buckets of leases is looked through for those that nobody has missed. */
const ROUND_MS = 10_000

/**
 * Carries out the end of leases whose keeper is gone. That a session has ended is a fact, and the
 * ephemeral node of the lease goes with it; the end of the lease is an act, of whoever sees this
 * first: one who wants its key, who waits behind it, who watches it. The transaction fails where
 * the keeper has come back meanwhile, so that until it is done a renewal saves the lease.
 */
export class Undertaker {
  readonly #journal: Journal
  readonly #ending: Ending
  readonly #lessor: Lessor
  readonly #underWay = new Map<LeaseId, Promise<boolean>>()
  /** Leases that must be left alone for a while, and since when they were seen to be dead. */
  readonly #lingering = new Map<LeaseId, { readonly version: number; readonly since: number }>()
  #isClosed = false

  constructor(journal: Journal, ending: Ending, lessor: Lessor) {
    this.#journal = journal
    this.#ending = ending
    this.#lessor = lessor
  }

  /** Ends those of these claims' leases that are due. Answers whether one was ended. */
  async endDead(places: readonly Place[]): Promise<boolean> {
    const dead = await this.#journal.tree.dead(places)
    const ended = await Promise.all(dead.map((id) => this.bury(id)))
    return ended.includes(true)
  }

  /** Ends a lease whose ephemeral node is gone. Answers whether there is no such lease any more. */
  bury(id: LeaseId): Promise<boolean> {
    if (this.#lessor.get(id)) {
      this.#lingering.delete(id)
      return Promise.resolve(false)
    }
    const known = this.#underWay.get(id)
    if (known) return known
    const burial = this.#bury(id).finally(() => this.#underWay.delete(id))
    this.#underWay.set(id, burial)
    return burial
  }

  /** The ephemeral node of a lease has gone; in most cases because the lease has ended. */
  suspect(id: LeaseId): void {
    const { clock, random } = this.#journal
    clock.timer(clock.now() + SPREAD_MS * random.next(), () => this.#inBackground(id))
  }

  /** Looks through one bucket of leases now and then, chosen by chance. */
  startRounds(): void {
    const { clock, random } = this.#journal
    const time = clock.now() + ROUND_MS * (0.5 + random.next())
    clock.timer(time, () => {
      if (this.#isClosed) return
      const bucket = Math.floor(random.next() * BUCKETS)
      void this.#lookThrough(bucket)
        .catch(() => {})
        .then(() => this.startRounds())
    })
  }

  close(): void {
    this.#isClosed = true
  }

  #inBackground(id: LeaseId): void {
    if (!this.#isClosed) void this.bury(id).catch(() => {})
  }

  async #bury(id: LeaseId): Promise<boolean> {
    const { paths } = this.#journal.tree
    const guard: Guard = (plan, { node }) => {
      plan.check('lease', paths.lease(id), node.stat.version)
      plan.checkAbsent('alive', paths.aliveOf(id))
    }
    for (let tries = 0; tries < TRIES; tries++) {
      const family = await this.#ending.family(id)
      const [root] = family
      if (!root) {
        this.#lingering.delete(id)
        return true
      }
      const { version } = root.node.stat
      if (!this.#isDue(id, version, root.record.linger)) return false
      try {
        const { leases } = await this.#ending.end([family], EXPIRED, { guard })
        this.#lessor.ended(leases)
        this.#lingering.delete(id)
        return true
      } catch (error) {
        if (!(error instanceof Conflict)) throw error
        if (error.part !== 'alive') continue
        this.#lingering.delete(id)
        return false
      }
    }
    return false
  }

  /** Whether a lease has been seen dead for as long as it must be left alone; else, waits for that. */
  #isDue(id: LeaseId, version: number, linger: number): boolean {
    if (linger <= 0) return true
    const { clock } = this.#journal
    const now = clock.now()
    const seen = this.#lingering.get(id)
    if (seen?.version === version) return now >= seen.since + linger
    this.#lingering.set(id, { version, since: now })
    clock.timer(now + linger, () => this.#inBackground(id))
    return false
  }

  async #lookThrough(bucket: number): Promise<void> {
    const { tree } = this.#journal
    const { value } = await tree.look([{ at: 'children', path: tree.paths.leaseBucket(bucket) }])
    const ids = value[0]?.children ?? []
    const found = await tree.look(ids.map((id) => ({ at: 'data', path: tree.paths.aliveOf(id) })))
    const dead = ids.filter((_, at) => !found.value[at]?.data)
    for (const id of dead) {
      const lease = await tree.lease(id)
      if (lease && lease.record.ttl !== Infinity) this.#inBackground(id)
    }
  }
}
