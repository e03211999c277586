import type { Log, Position } from '../log/index.ts'
import { type Clock, isLeaseholdError, type Revision } from '../port/index.ts'
import type { Machine } from './machine.ts'

/** So many revisions above those that are known to be lost, more may have been given. */
const MARGIN = 2 ** 32
/** No process makes more changes in a millisecond: those of all time are below the present one's. */
const CHANGES_PER_MS = 2048
/** After an append that failed, the next one waits for so long. */
const AGAIN_MS = 100

/**
 * What is known of entries that the log has lost (a restored backup, a failover to a member that had
 * not yet received them), and above which revision tokens must go on.
 *
 * Why it is safe. A token is the revision of its claim, so all that matters is that revisions go on
 * above every one that was given in the lost part. Every replica that has applied lost entries
 * finds out: the log ends before its position; or its next entry is given a position that it has
 * applied before; or an entry comes whose author has another history, which is checked for each
 * entry. It knows the revision that it had reached. A replica that applied more of the lost part and
 * never came back is covered twice: by 2^32 revisions, and by the wall clock, because a log makes
 * less than 2048 changes in a millisecond. Then it proposes to raise revisions in the log itself.
 * Applying that begins a new epoch, and entries of the old one are ignored: so no command that was
 * sent before counts after it, and of several proposals only the first does.
 *
 * What is not promised: leases that were granted in the lost part are gone, and their holders learn
 * it with their next renewal. Until then two may think that they hold one key. The resource refuses
 * the older one by its token. And until a replica that has applied lost entries reads or writes, one
 * that had not received them goes on, and may give a token of the lost part again.
 */
export class LostTail {
  readonly #clock: Clock
  /** Tokens must go on above this, because the caller says so. */
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

  /** Entries are gone that somebody has applied, who had reached this revision. */
  found(machine: Machine, revision: Revision): void {
    const known = machine.isFounded ? machine.kernel.revision : 0
    const before = this.#lost?.revision ?? 0
    this.#lost = { epoch: machine.epoch, revision: Math.max(known, revision, before) }
  }

  /** The log was read anew: is what was applied before the beginning of what was read now? */
  compare(before: Machine, now: Machine): void {
    if (!before.isFounded) return
    const mark = now.history.at(before.position)
    const isSame = now.isFounded && now.epoch === before.epoch
    const isOther = isSame && mark !== undefined && mark.history !== before.history.value
    const isElsewhere = !isSame && now.floor < before.kernel.revision
    if (isOther || isElsewhere || now.position < before.position) this.found(before, 0)
    this.check(now)
  }

  /** Forgets what is lost if that was seen to already. */
  check({ isFounded, epoch, floor }: Machine): void {
    if (this.#lost === undefined || !isFounded || epoch === this.#lost.epoch) return
    if (floor >= this.#lost.revision) this.#lost = undefined
  }

  /** Appends entries that nobody reads, until the log has reached this position. */
  async pass(log: Log, position: Position, entry: Uint8Array): Promise<void> {
    for (let last = 0; last < position; ) {
      try {
        last = await log.append(entry)
      } catch (error) {
        if (isLeaseholdError(error, 'closed')) return
        await new Promise<void>((resolve) => {
          this.#clock.timer(this.#clock.now() + AGAIN_MS, resolve, true)
        })
      }
    }
  }

  /** Above which revision tokens must go on; `undefined` if they do. */
  above(machine: Machine): Revision | undefined {
    const revision = machine.isFounded ? machine.kernel.revision : 0
    let above = this.#tokensAbove
    if (this.#lost) {
      const given = Math.max(this.#lost.revision, revision) + MARGIN
      above = Math.max(above, given, Math.floor(this.#clock.now()) * CHANGES_PER_MS)
    }
    return above > revision ? above : undefined
  }
}
