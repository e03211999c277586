import type {
  Key,
  LeaseholdError,
  LeaseId,
  Observer,
  Revision,
  Watch,
  WatchTarget,
} from '../../port/index.ts'
import type { Hearer } from './calls.ts'
import { storeFault } from './faults.ts'
import type { Follower, Reader, Told } from './follower.ts'
import { LeaseWatch, type LeaseWatchSurroundings } from './lease-watch.ts'
import { Observing } from './observing.ts'
import type { LeaseClaim, Tree } from './tree.ts'

export interface WatchesSurroundings extends LeaseWatchSurroundings {
  readonly follower: Follower
  /** Ends those leases with claims under a prefix whose keepers are gone. */
  clear(prefix: string): Promise<void>
}

/** Those who watch, in this store. */
export class Watches implements Hearer {
  readonly #around: WatchesSurroundings
  readonly #byLease = new Map<LeaseId, Set<LeaseWatch>>()
  readonly #open = new Set<Observing>()

  constructor(around: WatchesSurroundings) {
    this.#around = around
  }

  watch(target: WatchTarget, observer: Observer): Watch {
    if ('lease' in target) return this.#watchLease(target.lease, observer)
    const { tree, follower } = this.#around
    const watch = new PrefixWatch(target.prefix, observer, follower, () =>
      this.#open.delete(watch.observing),
    )
    this.#open.add(watch.observing)
    void watch.begin(tree, target.from)
    this.#around.clear(target.prefix).catch(() => {})
    return watch.observing
  }

  claimed(lease: LeaseId, claim: LeaseClaim, holds: boolean): void {
    for (const watch of this.#byLease.get(lease) ?? []) watch.claimed(claim, holds)
  }

  released(lease: LeaseId, token: number, keys: readonly Key[], revision: Revision): void {
    for (const watch of this.#byLease.get(lease) ?? []) watch.released(token, keys, revision)
  }

  close(error: LeaseholdError): void {
    for (const observing of [...this.#open]) observing.notify({ type: 'interrupted', error })
  }

  #watchLease(id: LeaseId, observer: Observer): Watch {
    const watches = this.#byLease.get(id) ?? new Set()
    const watch = new LeaseWatch(id, observer, this.#around, () => {
      this.#open.delete(watch.observing)
      watches.delete(watch)
      if (watches.size === 0 && this.#byLease.get(id) === watches) this.#byLease.delete(id)
    })
    this.#byLease.set(id, watches.add(watch))
    this.#open.add(watch.observing)
    return watch.observing
  }
}

/** One who watches a prefix. */
class PrefixWatch implements Reader {
  readonly observing: Observing
  readonly #prefix: string
  readonly #follower: Follower
  #after = Infinity

  constructor(prefix: string, observer: Observer, follower: Follower, left: () => void) {
    this.#prefix = prefix
    this.#follower = follower
    this.observing = new Observing(observer, () => {
      follower.remove(this)
      left()
    })
  }

  async begin(tree: Tree, from: Revision | undefined): Promise<void> {
    // What this store does from here on is heard, though the journal is not followed yet.
    const now = tree.main.seen
    try {
      let started: Promise<void>
      do {
        started = this.#follower.start()
        await started
        await tree.catchUp()
        // Should it have lost track meanwhile, it begins anew, and what it knows is not complete yet.
      } while (this.observing.isOpen && this.#follower.start() !== started)
      if (!this.observing.isOpen) return
      const { completeAfter, changes } = this.#follower
      // A revision that is yet to come was given by another ensemble.
      if (from !== undefined && (from < completeAfter || from > tree.main.seen)) {
        this.observing.notify({ type: 'compacted', oldest: completeAfter })
        return
      }
      this.#after = from ?? Math.max(now, completeAfter)
      this.observing.notify({ type: 'watching', revision: this.#after })
      for (const change of [...changes]) this.told(change)
      if (this.observing.isOpen) this.#follower.add(this)
    } catch (error) {
      this.observing.notify({ type: 'interrupted', error: storeFault(error) })
    }
  }

  told({ zxid, events }: Told): void {
    if (zxid <= this.#after) return
    const own = events.filter(({ key }) => key.startsWith(this.#prefix))
    if (own.length > 0) this.observing.notify({ type: 'events', revision: zxid, events: own })
  }

  broken(error: LeaseholdError): void {
    this.observing.notify({ type: 'interrupted', error })
  }
}
