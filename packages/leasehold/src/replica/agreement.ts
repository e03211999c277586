import type { Clock, LeaseholdError } from '../port/index.ts'
import type { Entry } from './entry.ts'
import { type Disagreement, outvoted } from './faults.ts'
import type { Applied } from './machine.ts'
import type { MemberTable } from './member-table.ts'

/** Each replica waits for so long for the others to say what they have. */
const DISPUTE_MS = 2000

export interface AgreementOptions {
  readonly clock: Clock
  readonly members: () => MemberTable
  /** Another replica has another state: this one must write an entry, and answer nobody. */
  readonly doubted: () => void
  /** This replica is right. */
  readonly settled: () => void
  /** This replica is wrong, or nobody knows. */
  readonly outvoted: (error: LeaseholdError) => void
}

/**
 * Finds out which replica is wrong if two that read the same log have different states.
 *
 * No replica can tell by itself. So each that sees a disagreement stops answering, writes an entry,
 * and counts the entries of the others: each says by its checksum whether its author agrees. Once
 * states differ their checksums differ for good, so an entry counts if its author had applied as much
 * as the author of the one that began this. The replica goes on if most members agree with it, and
 * stops if most do not. If too few speak in time, those that spoke decide, and a tie stops both.
 *
 * Nobody applies an entry of a replica that disagrees. So what a wrong one proposes has no effect
 * on those that are right.
 */
export class Agreement {
  readonly #options: AgreementOptions
  #dispute: Disagreement | undefined
  readonly #votes = new Map<string, boolean>()
  /** Members that were found to be wrong. */
  readonly #wrong = new Set<string>()
  /** Answers that wait until it is clear that this replica is right. */
  #held: (() => void)[] = []
  #certain: Promise<void> | undefined
  #beCertain = (): void => {}

  constructor(options: AgreementOptions) {
    this.#options = options
  }

  get isOpen(): boolean {
    return this.#dispute !== undefined
  }

  /** What is told to watches waits for this. */
  get certain(): Promise<void> | undefined {
    return this.#certain
  }

  /** Gives an answer, when it is clear that it is right. */
  tell(answer: () => void): void {
    if (this.#dispute) this.#held.push(answer)
    else answer()
  }

  /** An entry of another member was compared with the state here. */
  compared({ member, asOf, checksum }: Entry, applied: Applied): void {
    if (applied.outcome === 'disputed') {
      this.#differs({ position: asOf, member, own: applied.checksum, theirs: checksum })
    } else if (applied.outcome === 'applied' && this.#dispute) {
      if (asOf >= this.#dispute.position) this.#votes.set(member, true)
    }
  }

  /** Looks whether it can be decided. `isOver`: nobody is waited for any longer. */
  judge(isOver: boolean): void {
    if (!this.#dispute) return
    let differ = 0
    for (const agrees of this.#votes.values()) if (!agrees) differ++
    const agree = 1 + this.#votes.size - differ
    const half = isOver ? (agree + differ) / 2 : this.#options.members().size / 2
    if (agree > half) {
      for (const [member, agrees] of this.#votes) if (!agrees) this.#wrong.add(member)
      this.reset()
      this.#options.settled()
    } else if (isOver || differ > half) {
      this.#options.outvoted(outvoted(this.#dispute, agree, differ))
    }
  }

  /** There is nothing to decide any more. */
  reset(): void {
    this.#dispute = undefined
    this.#votes.clear()
    this.#certain = undefined
    this.#beCertain()
    for (const answer of this.#held.splice(0)) answer()
  }

  #differs(disagreement: Disagreement): void {
    if (this.#wrong.has(disagreement.member)) return
    this.#votes.set(disagreement.member, false)
    if (this.#dispute) return
    this.#dispute = disagreement
    this.#certain = new Promise((resolve) => {
      this.#beCertain = resolve
    })
    const { clock, doubted } = this.#options
    clock.timer(clock.now() + DISPUTE_MS, () => this.#end(disagreement), true)
    doubted()
  }

  #end(disagreement: Disagreement): void {
    if (this.#dispute === disagreement) this.judge(true)
  }
}
