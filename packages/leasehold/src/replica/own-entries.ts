import type { Position } from '../log/index.ts'
import type { Call } from './call-deadlines.ts'
import type { Entry } from './entry.ts'
import { forgotten, unanswered } from './faults.ts'
import type { Machine } from './machine.ts'

/** One entry on its way into the log, and the calls that it carries. */
export interface Batch {
  /** The name under which it was sent, and its number. */
  readonly member: string
  readonly sequence: number
  /** The last position that was applied then, and the hash of all entries up to there. */
  readonly asOf: Position
  readonly history: number
  readonly bytes: Uint8Array
  /** Each call that has a command of its own, or only reads. Their commands are the last ones. */
  readonly calls: readonly Call[]
  /** The calls that one command renews all leases of. */
  readonly renewals: readonly Call[]
  /** It was applied, or never will be: nothing more needs to be done for it. */
  isOver: boolean
}

/** The entries that this replica has sent and that were not applied yet. */
export class OwnEntries {
  #batches: Batch[] = []
  /** Those that were sent under earlier names. */
  #earlier: Batch[] = []

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
   * From now on this replica has another name. An entry that it sent under an earlier one may be
   * applied until that name is removed: in a log that has lost its tail, after all was read anew.
   */
  rename(): void {
    this.#earlier.push(...this.takeThrough(Infinity))
  }

  /** All earlier names were removed: takes out what was not applied until then, and never will be. */
  takeEarlier(): Batch[] {
    return this.#earlier.splice(0)
  }

  /** An entry of another name was applied. Was it an earlier one, its calls are not sent again. */
  applied({ member, sequence }: Entry): void {
    this.#failEarlier((batch) =>
      batch.member === member && batch.sequence === sequence ? unanswered() : undefined,
    )
  }

  /**
   * This machine was loaded from a snapshot. It has the effect of entries, and not their answers. If a
   * member was removed before, its numbers are not there either: nobody can tell which of its entries
   * were applied. But if this log never was what its author had read, none of them was; and if it
   * was shorter, they come when it is followed.
   */
  loaded({ members, position, history }: Machine): void {
    const failure = (batch: Batch): Error | undefined => {
      if (members.has(batch.member)) {
        return batch.sequence <= members.sequenceOf(batch.member) ? unanswered() : undefined
      }
      const isOther = (history.at(batch.asOf)?.history ?? batch.history) !== batch.history
      return isOther || position < batch.asOf ? undefined : forgotten()
    }
    for (const batch of this.#takeOut((each) => failure(each) !== undefined)) {
      failAll(batch, failure(batch)!)
    }
    this.#failEarlier(failure)
  }

  #failEarlier(failure: (batch: Batch) => Error | undefined): void {
    if (this.#earlier.length === 0) return
    this.#earlier = this.#earlier.filter((batch) => {
      const error = failure(batch)
      if (error) failAll(batch, error)
      return error === undefined
    })
  }

  #takeOut(isMeant: (batch: Batch) => boolean): Batch[] {
    const taken = this.#batches.filter(isMeant)
    if (taken.length > 0) this.#batches = this.#batches.filter((batch) => !isMeant(batch))
    for (const batch of taken) batch.isOver = true
    return taken
  }
}

export function failAll({ calls, renewals }: Batch, error: Error): void {
  for (const call of [...calls, ...renewals]) call.fail(error)
}
