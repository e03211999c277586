import assert from 'node:assert/strict'
import type { Notice, Token } from '../../port/index.ts'
import { WatchRecorder } from '../conformance/watches/watch-recorder.ts'
import { madeAgo, type Names } from './calls.ts'
import { normalizeNotices } from './normalize.ts'
import type { KernelSide, StoreSide } from './sides.ts'

/** After this long, a missing notice is a failure: shrinking a failure waits often. */
const TIMEOUT_MS = 5000

/** A lease that is watched through one of the stores, and what the kernel has reported of it since. */
interface Watched {
  readonly lease: number
  readonly store: number
  readonly recorder: WatchRecorder
  readonly expected: readonly Notice[]
}

/** The leases that are watched while commands run, each through one of the stores. */
export class LeaseWatches {
  readonly #store: StoreSide
  readonly #kernel: KernelSide
  readonly #ownClaimsOnly: boolean
  readonly #watched: Watched[] = []

  constructor(store: StoreSide, kernel: KernelSide, ownClaimsOnly: boolean) {
    this.#store = store
    this.#kernel = kernel
    this.#ownClaimsOnly = ownClaimsOnly
  }

  /** Watches the lease that was granted this long ago, and waits until the watch has begun. */
  async begin(store: number, ago: number): Promise<void> {
    const { leases } = this.#store.names
    const lease = leases.indexOf(madeAgo(leases, ago) ?? '')
    if (lease < 0) return
    const recorder = new WatchRecorder(
      this.#store.stores[store]!,
      { lease: leases[lease]! },
      TIMEOUT_MS,
    )
    const expected = this.#kernel.watch(this.#kernel.names.leases[lease]!)
    this.#watched.push({ lease, store, recorder, expected })
    await recorder.nextAny()
  }

  /** Waits until every watch has reported what it must. */
  async settle(): Promise<void> {
    for (const watched of this.#watched) await this.#settleOne(watched)
  }

  /**
   * Ends all leases, one after the other, so that most waiting claims hold before, and every watch has
   * a final notice; then compares the notices.
   */
  async compare(): Promise<void> {
    const { stores, names } = this.#store
    for (const lease of names.leases.keys()) {
      await this.settle()
      const end = { do: 'revoke', target: 'lease', at: names.leases.length - 1 - lease } as const
      const answer = await this.#store.run(end, lease % stores.length)
      assert.deepEqual(answer, this.#kernel.run(end), `the end of lease ${lease} differs`)
    }
    await this.settle()
    for (const watched of this.#watched) this.#compareOne(watched)
  }

  close(): void {
    for (const { recorder } of this.#watched) recorder.close()
  }

  async #settleOne(watched: Watched): Promise<void> {
    const { recorder, expected, store } = watched
    const isOver = () => ['gone', 'interrupted'].includes(recorder.notices.at(-1)?.type ?? '')
    const wanted = this.#counted(expected, this.#kernel.names, store)
    const mustEnd = wanted.at(-1)?.type === 'gone'
    const hasHeard = () =>
      !mustEnd && this.#counted(recorder.notices, this.#store.names, store).length >= wanted.length
    while (!isOver() && !hasHeard()) {
      try {
        await recorder.nextAny()
      } catch (error) {
        // The difference is the best description of what is missing.
        this.#compareOne(watched)
        throw error
      }
    }
  }

  #compareOne({ lease, store, recorder, expected }: Watched): void {
    const sides = [
      [this.#store, recorder.notices],
      [this.#kernel, expected],
    ] as const
    const [reported, wanted] = sides.map(([{ names, exact }, notices]) => {
      const counted = this.#counted(notices, names, store)
      return normalizeNotices(counted, names.leases[lease]!, names, exact)
    })
    assert.deepEqual(reported, wanted, `the watch on lease ${lease} through store ${store} differs`)
  }

  /** What counts: perhaps not the notices about claims that others made after the watch had begun. */
  #counted(notices: readonly Notice[], names: Names, store: number): readonly Notice[] {
    if (!this.#ownClaimsOnly) return notices
    const [first] = notices
    const standing = first?.type === 'standing' ? first.claims.map(({ token }) => token) : []
    const isOwn = (token: Token) => {
      // Both sides number their claims alike.
      const claim = names.claims.findIndex((made) => made.token === token)
      return standing.includes(token) || this.#store.madeThrough[claim] === store
    }
    return notices.filter((notice) => notice.type !== 'holds' || isOwn(notice.token))
  }
}
