import type { Key, LeaseId, Observer, OwnClaim, Revision } from '../../port/index.ts'
import { storeFault } from './faults.ts'
import { blockersOf, type Place } from './line.ts'
import { Observing } from './observing.ts'
import { cameToHold } from './plan.ts'
import type { LeaseRecord } from './records.ts'
import type { KeyState, LeaseClaim, LeaseState, Tree } from './tree.ts'
import { CODE, exists, getData, isFault } from './wire/index.ts'

/** What a lease's watch needs of others. */
export interface LeaseWatchSurroundings {
  readonly tree: Tree
  /** Ends a lease whose keeper is gone; answers whether there is no such lease any more. */
  bury(id: LeaseId): Promise<boolean>
  /** Milliseconds until the life of a lease ends that was broken. */
  remaining(id: LeaseId, record: LeaseRecord): number
  /** Told when a claim has come to hold its keys, and how they stand. */
  holds(id: LeaseId, token: number, states: readonly KeyState[]): void
}

interface Followed extends LeaseClaim {
  holds: boolean
  /** Looks again; there while it waits to be woken. */
  wake: (() => void) | undefined
}

/**
 * One watch on a lease: tells first how its claims stand, then what concerns it.
 *
 * For each claim that waits, only those few before it are watched of whom one must go before it can
 * hold (see `blockersOf`), and whether their keepers live: whoever leaves wakes the next in line,
 * and nobody else.
 */
export class LeaseWatch {
  readonly id: LeaseId
  readonly observing: Observing
  readonly #around: LeaseWatchSurroundings
  readonly #claims = new Map<number, Followed>()
  #record: LeaseRecord | undefined
  #seen = 0
  #isLooking = false
  #mustLook = false
  readonly #look = () => void this.#lookAgain()

  constructor(id: LeaseId, observer: Observer, around: LeaseWatchSurroundings, left: () => void) {
    this.id = id
    this.#around = around
    this.observing = new Observing(observer, () => {
      this.#leave()
      left()
    })
    this.#look()
  }

  /** A claim of this lease was made here, after the watch began or while it did. */
  claimed(claim: LeaseClaim, holds: boolean): void {
    if (!this.#record || this.#claims.has(claim.token)) return
    this.#add(claim, holds)
  }

  /** Claims of this lease were released here. */
  released(token: number, keys: readonly Key[], revision: Revision): void {
    this.#remove(token, keys, revision)
  }

  #leave(): void {
    const { main, paths } = this.#around.tree
    main.unwatch(paths.lease(this.id), this.#look)
    for (const claim of this.#claims.values()) claim.wake?.()
    this.#claims.clear()
  }

  /** That it holds is told only where that came about after this revision. */
  #add(claim: LeaseClaim, holds: boolean, after: Revision = -1): void {
    const followed = { ...claim, holds, wake: undefined }
    this.#claims.set(claim.token, followed)
    if (!holds) void this.#follow(followed, after)
  }

  #remove(token: number, keys: readonly Key[], revision: Revision): void {
    const claim = this.#claims.get(token)
    if (!claim) return
    const left = claim.keys.filter((key) => !keys.includes(key))
    this.#claims.delete(token)
    // What waits for fewer keys may hold them all by now.
    if (left.length > 0) this.#add({ ...claim, keys: left }, claim.holds, revision)
    claim.wake?.()
  }

  /** Reads the lease whenever its node was set or deleted, or may have been. */
  async #lookAgain(): Promise<void> {
    this.#mustLook = true
    if (this.#isLooking) return
    this.#isLooking = true
    try {
      while (this.#mustLook && this.observing.isOpen) {
        this.#mustLook = false
        await this.#lookOnce()
      }
    } catch (error) {
      this.observing.notify({ type: 'interrupted', error: storeFault(error) })
    }
    this.#isLooking = false
  }

  async #lookOnce(): Promise<void> {
    const { tree } = this.#around
    const path = tree.paths.lease(this.id)
    tree.main.watch(path, this.#look)
    // The server watches first and is read then: nothing can change unheard between the two.
    const isWatched = await tree.main.call(getData(path, true)).then(
      () => true,
      (error) => {
        if (isFault(error, CODE.noNode)) return false
        throw error
      },
    )
    const state = await tree.leaseForSure(this.id)
    if (!this.observing.isOpen) return
    if (state && !isWatched) this.#mustLook = true
    if (!state) {
      const end = await tree.endOf(this.id)
      this.observing.notify({ type: 'gone', end })
    } else if (this.#record) this.#changed(state)
    else await this.#begin(state)
  }

  async #begin(state: LeaseState): Promise<void> {
    const { tree } = this.#around
    const keys = [...new Set(state.claims.flatMap((claim) => claim.keys))]
    const states = new Map((await tree.keys(keys)).map((each) => [each.key, each]))
    const standing = state.claims.map((claim) => ({ claim, holds: holdsAll(claim, states) }))
    if (!this.observing.isOpen) return
    this.#record = state.record
    this.#seen = state.node.stat.mzxid
    const claims = standing.flatMap(({ claim, holds }) =>
      claim.keys.map((key): OwnClaim => ({ key, token: claim.token, holds })),
    )
    this.observing.notify({ type: 'standing', revision: state.zxid, claims })
    for (const { claim, holds } of standing) this.#add(claim, holds)
  }

  #changed({ record, node }: LeaseState): void {
    const { cap, removed = [] } = record
    const { mzxid } = node.stat
    for (const { key, token, end, revision } of removed) {
      const at = revision || mzxid
      if (at <= this.#seen) continue
      this.#remove(token, [key], at)
      this.observing.notify({ type: 'removed', revision: at, key, token, end })
    }
    const isBroken = cap !== undefined && cap.after !== this.#record?.cap?.after
    this.#record = record
    this.#seen = mzxid
    if (!isBroken) return
    const end = { reason: 'broken', by: cap.by, why: cap.why } as const
    this.observing.notify({
      type: 'capped',
      remaining: this.#around.remaining(this.id, record),
      end,
    })
  }

  /** Waits until a claim holds all its keys, or is no more. */
  async #follow(claim: Followed, after: Revision): Promise<void> {
    const isWanted = () => this.observing.isOpen && this.#claims.get(claim.token) === claim
    let waitedFor: readonly Key[] = claim.keys
    try {
      while (isWanted()) {
        const states = await this.#around.tree.keys(claim.keys)
        if (!isWanted()) return
        const places = states.map(({ line }) => line.findIndex((it) => it.claim === claim.claim))
        if (places.includes(-1)) return this.#shrink(claim, places, waitedFor)
        const blocked = states.filter(({ held }, at) => places[at]! >= held)
        if (blocked.length === 0) {
          claim.holds = true
          this.#around.holds(this.id, claim.token, states)
          const since = cameToHold(states)
          const revision = Math.max(since, claim.token)
          if (since > after) this.observing.notify({ type: 'holds', revision, token: claim.token })
          return
        }
        after = -1
        waitedFor = blocked.map(({ key }) => key)
        await this.#untilOneLeaves(claim, blocked, isWanted)
      }
    } catch (error) {
      this.observing.notify({ type: 'interrupted', error: storeFault(error) })
    }
  }

  /**
   * It has fewer keys than before: some were taken by force, of which the lease's node tells, or were
   * released through another store. What it holds of the rest is news only where that was waited for.
   */
  #shrink({ token, keys }: Followed, places: readonly number[], waitedFor: readonly Key[]): void {
    const gone = keys.filter((_, at) => places[at] === -1)
    const isNews = keys.some((key) => !gone.includes(key) && waitedFor.includes(key))
    this.#remove(token, gone, isNews ? -1 : Number.POSITIVE_INFINITY)
  }

  async #untilOneLeaves(
    claim: Followed,
    blocked: readonly KeyState[],
    isWanted: () => boolean,
  ): Promise<void> {
    const { tree } = this.#around
    const woken = new Promise<void>((resolve) => {
      claim.wake = resolve
    })
    const wake = () => claim.wake?.()
    const watched: string[] = []
    const watch = (path: string) => {
      watched.push(path)
      tree.main.watch(path, wake)
      return tree.main.call(exists(path, true)).then(
        () => true,
        (error) => {
          if (isFault(error, CODE.noNode)) return false
          throw error
        },
      )
    }
    const look = async ({ key, line }: KeyState, place: Place) => {
      const alive = place.isPermanent || watch(tree.paths.aliveOf(place.lease))
      if (!(await watch(`${tree.paths.key(key)}/${place.name}`))) wake()
      if (!(await alive) && (await this.#around.bury(place.lease))) wake()
      return line
    }
    await Promise.all(
      blocked.flatMap((state) => {
        const index = state.line.findIndex((it) => it.claim === claim.claim)
        return blockersOf(state.line, index).map((place) => look(state, place))
      }),
    )
    if (isWanted()) await woken
    claim.wake = undefined
    for (const path of watched) tree.main.unwatch(path, wake)
  }
}

function holdsAll({ claim, keys }: LeaseClaim, states: ReadonlyMap<Key, KeyState>): boolean {
  return keys.every((key) => {
    const state = states.get(key)
    const index = state?.line.findIndex((place) => place.claim === claim) ?? -1
    return state !== undefined && index >= 0 && index < state.held
  })
}
