import type { Clock, LeaseholdError } from '../port/index.ts'
import type { Entry } from './entry.ts'
import { type Disagreement, outvoted } from './faults.ts'
import type { Applied, MemberTable } from './state/index.ts'

/** How long a replica waits for the votes of the others. */
const DISPUTE_MS = 2000

export interface AgreementOptions {
  readonly clock: Clock
  readonly members: () => MemberTable
  /** Another replica has a different state: this one must write an entry and stop answering. */
  readonly disagreed: () => void
  /** The vote is over: this replica is right. */
  readonly settled: () => void
  /** The vote is over: this replica is wrong, or there was a tie. */
  readonly outvoted: (error: LeaseholdError) => void
}

/**
 * Finds out which replica is wrong if two that read the same log have different states.
 *
 * No replica can tell alone, so they vote. A replica that sees a disagreement stops answering,
 * writes an entry, and counts the entries of the others: the checksum in an entry is its author's
 * vote. Once states differ, their checksums stay different. So an entry counts as a vote if its author
 * had applied at least as much as the author of the entry that started the dispute. The replica
 * continues if most members agree with it, and stops if most do not. If too few vote in time, the
 * votes that arrived decide, and a tie stops both sides.
 *
 * A replica does not apply an entry whose author disagrees with it. So a wrong replica's proposals
 * have no effect on the right ones.
 */
export class Agreement {
  readonly #options: AgreementOptions
  #dispute: Disagreement | undefined
  readonly #votes = new Map<string, boolean>()
  /** Members that lost an earlier vote. */
  readonly #wrong = new Set<string>()
  /** Answers that are held back until the vote shows that this replica is right. */
  #heldAnswers: (() => void)[] = []
  #decided: Promise<void> | undefined
  #markDecided = (): void => {}

  constructor(options: AgreementOptions) {
    this.#options = options
  }

  get isOpen(): boolean {
    return this.#dispute !== undefined
  }

  /** Watches are not notified before this is fulfilled. */
  get decided(): Promise<void> | undefined {
    return this.#decided
  }

  /** Gives an answer now, or after the vote if one is open. */
  whenDecided(answer: () => void): void {
    if (this.#dispute) this.#heldAnswers.push(answer)
    else answer()
  }

  /** Counts the vote in another member's entry, which was compared with the state here. */
  compare({ member, asOf, checksum }: Entry, applied: Applied): void {
    if (applied.outcome === 'disputed') {
      this.#differs({ position: asOf, member, own: applied.checksum, theirs: checksum })
    } else if (applied.outcome === 'applied' && this.#dispute) {
      if (asOf >= this.#dispute.position) this.#votes.set(member, true)
    }
  }

  /** Decides the vote if possible. `isTimeUp`: do not wait for more votes. */
  decide(isTimeUp: boolean): void {
    if (!this.#dispute) return
    let differ = 0
    for (const agrees of this.#votes.values()) if (!agrees) differ++
    const agree = 1 + this.#votes.size - differ
    const half = isTimeUp ? (agree + differ) / 2 : this.#options.members().size / 2
    if (agree > half) {
      for (const [member, agrees] of this.#votes) if (!agrees) this.#wrong.add(member)
      this.reset()
      this.#options.settled()
    } else if (isTimeUp || differ > half) {
      this.#options.outvoted(outvoted(this.#dispute, agree, differ))
    }
  }

  /** Ends the dispute and gives the answers that were held back. */
  reset(): void {
    this.#dispute = undefined
    this.#votes.clear()
    this.#decided = undefined
    this.#markDecided()
    for (const answer of this.#heldAnswers.splice(0)) answer()
  }

  #differs(disagreement: Disagreement): void {
    if (this.#wrong.has(disagreement.member)) return
    this.#votes.set(disagreement.member, false)
    if (this.#dispute) return
    this.#dispute = disagreement
    this.#decided = new Promise((resolve) => {
      this.#markDecided = resolve
    })
    const { clock, disagreed } = this.#options
    clock.timer(clock.now() + DISPUTE_MS, () => this.#timeUp(disagreement), true)
    disagreed()
  }

  #timeUp(disagreement: Disagreement): void {
    if (this.#dispute === disagreement) this.decide(true)
  }
}
