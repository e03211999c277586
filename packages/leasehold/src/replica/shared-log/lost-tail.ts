import type { Log, Position } from '../../log/index.ts'
import { type Clock, isLeaseholdError, type Revision } from '../../port/index.ts'
import type { Machine } from '../state/index.ts'

/** How many revisions above the known lost ones may also be lost. */
const MARGIN = 2 ** 32
/** No log makes more changes per millisecond, so all revisions are below the current time's. */
const CHANGES_PER_MS = 2048
/** The wait after a failed append. */
const RETRY_MS = 100

/**
 * Tracks entries that the log has lost (a restored backup, a failover to a member that had not yet
 * received them), and computes the revision above which tokens must continue.
 *
 * Why it is safe. A token is the revision of its claim, so revisions must continue above every
 * revision of the lost part. Every replica that applied lost entries notices: the log ends before its
 * position; or its next entry gets a position that it has already applied; or it reads an entry whose
 * author has another history, which is checked for each entry. It knows the revision that it had
 * reached. Another replica may have applied more of the lost part and never return. Two margins cover
 * that: 2^32 revisions, and the wall clock, because a log makes fewer than 2048 changes per
 * millisecond. The replica then proposes in the log to raise revisions. Applying the proposal starts
 * a new epoch, and entries of the old epoch are ignored. So no command that was sent before counts
 * afterwards, and only the first of several proposals counts.
 *
 * Not promised: leases that were granted in the lost part are gone, and their holders learn it at
 * their next renewal. Until then two holders may believe that they hold one key; the resource refuses
 * the older one by its token. Also, until a replica that applied lost entries reads or writes, a
 * replica that never received them continues, and may give a token of the lost part again.
 */
export class LostTail {
  readonly #clock: Clock
  /** Tokens must continue above this, because the caller says so. */
  readonly #tokensAbove: Revision
  /** The epoch that has lost entries, and the highest revision that is known to be lost. */
  #lost: { readonly epoch: string; readonly revision: Revision } | undefined

  constructor(clock: Clock, tokensAbove: Revision) {
    this.#clock = clock
    this.#tokensAbove = tokensAbove
  }

  get isLost(): boolean {
    return this.#lost !== undefined
  }

  /** Records that the log has lost entries up to at least this revision. */
  record(machine: Machine, revision: Revision): void {
    const known = machine.isInitialized ? machine.kernel.revision : 0
    const before = this.#lost?.revision ?? 0
    this.#lost = { epoch: machine.epoch, revision: Math.max(known, revision, before) }
  }

  /** Compares the state before and after a reload: records a loss if the new log is another one. */
  compare(before: Machine, now: Machine): void {
    if (!before.isInitialized) return
    const mark = now.history.at(before.position)
    const isSame = now.isInitialized && now.epoch === before.epoch
    const isOther = isSame && mark !== undefined && mark.history !== before.history.value
    const isElsewhere = !isSame && now.floor < before.kernel.revision
    if (isOther || isElsewhere || now.position < before.position) this.record(before, 0)
    this.forgetIfHandled(now)
  }

  /** Forgets the loss if a newer epoch already continues above it. */
  forgetIfHandled({ isInitialized, epoch, floor }: Machine): void {
    if (this.#lost === undefined || !isInitialized || epoch === this.#lost.epoch) return
    if (floor >= this.#lost.revision) this.#lost = undefined
  }

  /** Appends entries that nobody reads, until the log has reached this position. */
  async extendLog(log: Log, position: Position, entry: Uint8Array): Promise<void> {
    for (let last = 0; last < position; ) {
      try {
        last = await log.append(entry)
      } catch (error) {
        if (isLeaseholdError(error, 'closed')) return
        await new Promise<void>((resolve) => {
          this.#clock.timer(this.#clock.now() + RETRY_MS, resolve, true)
        })
      }
    }
  }

  /** Above which revision tokens must go on; `undefined` if they do. */
  tokensAbove(machine: Machine): Revision | undefined {
    const revision = machine.isInitialized ? machine.kernel.revision : 0
    let above = this.#tokensAbove
    if (this.#lost) {
      const given = Math.max(this.#lost.revision, revision) + MARGIN
      above = Math.max(above, given, Math.floor(this.#clock.now()) * CHANGES_PER_MS)
    }
    return above > revision ? above : undefined
  }
}
