import type { Call } from './call-deadlines.ts'
import { forgotten, unanswered } from './faults.ts'
import type { MemberTable } from './member-table.ts'

/** One entry on its way into the log, and the calls that it carries. */
export interface Batch {
  readonly sequence: number
  readonly bytes: Uint8Array
  /** Each call that has a command of its own, with the place of that command. */
  readonly calls: readonly { readonly call: Call; readonly at: number }[]
  /** The calls that one command renews all leases of. */
  readonly renewals: readonly Call[]
  /** It was applied, or never will be: nothing more needs to be done for it. */
  isOver: boolean
}

/** The entries that this replica has sent and that were not applied yet. */
export class OwnEntries {
  #batches: Batch[] = []

  get isEmpty(): boolean {
    return this.#batches.length === 0
  }

  add(batch: Batch): void {
    this.#batches.push(batch)
  }

  /** Takes out the one with this number, which is over. */
  take(sequence: number): Batch | undefined {
    return this.#takeOut((batch) => batch.sequence === sequence)[0]
  }

  /** Takes out those with numbers up to this one, which are over. */
  takeThrough(sequence: number): Batch[] {
    return this.#takeOut((batch) => batch.sequence <= sequence)
  }

  /**
   * The state was loaded from a snapshot. It has the effect of entries, and not their answers. If this
   * member was removed meanwhile, its numbers are not there either: nobody can tell which of its
   * entries were applied.
   */
  loaded(members: MemberTable, member: string): void {
    const isKnown = members.has(member)
    const over = this.takeThrough(isKnown ? members.sequenceOf(member) : Infinity)
    for (const batch of over) failAll(batch, isKnown ? unanswered() : forgotten())
  }

  #takeOut(isMeant: (batch: Batch) => boolean): Batch[] {
    const taken = this.#batches.filter(isMeant)
    if (taken.length > 0) this.#batches = this.#batches.filter((batch) => !isMeant(batch))
    for (const batch of taken) batch.isOver = true
    return taken
  }
}

export function failAll({ calls, renewals }: Batch, error: Error): void {
  for (const { call } of calls) call.fail(error)
  for (const call of renewals) call.fail(error)
}
