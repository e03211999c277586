import type { Position } from '../../log/index.ts'
import type { Entry } from '../entry.ts'
import { answerMissed, memberForgotten } from '../faults.ts'
import type { Machine } from '../state/index.ts'
import type { Call } from './call-deadlines.ts'

/** One entry that is sent to the log, and the calls that it carries. */
export interface Batch {
  /** The name under which it was sent, and its number. */
  readonly member: string
  readonly sequence: number
  /** The last position that was applied when it was written, and the hash of all entries up to it. */
  readonly asOf: Position
  readonly history: number
  readonly bytes: Uint8Array
  /** The calls that have a command or only read. Their commands are at the end of `bytes`. */
  readonly calls: readonly Call[]
  /** The renewal calls. One command renews the leases of all of them. */
  readonly renewals: readonly Call[]
  /** It was applied or will never be: there is nothing more to do. */
  isOver: boolean
}

/** The entries that this replica has sent and not yet applied. */
export class OwnEntries {
  #batches: Batch[] = []
  /** Entries that were sent under earlier names. */
  #earlier: Batch[] = []

  get isEmpty(): boolean {
    return this.#batches.length === 0
  }

  add(batch: Batch): void {
    this.#batches.push(batch)
  }

  /** Takes out the entry with this number, which is over. */
  take(sequence: number): Batch | undefined {
    return this.#takeOut((batch) => batch.sequence === sequence)[0]
  }

  /** Takes out the entries up to this number, which are over. */
  takeThrough(sequence: number): Batch[] {
    return this.#takeOut((batch) => batch.sequence <= sequence)
  }

  /**
   * The replica now has another name. An entry that it sent under an earlier name may still be applied
   * until that name is removed. In a log that has lost its tail, that can happen after a reload.
   */
  rename(): void {
    this.#earlier.push(...this.takeThrough(Infinity))
  }

  /** All earlier names were removed: takes out their entries, which will never be applied. */
  takeEarlier(): Batch[] {
    return this.#earlier.splice(0)
  }

  /** An entry of another name was applied. If it was an earlier own name, its calls are not resent. */
  applied({ member, sequence }: Entry): void {
    this.#failEarlier((batch) =>
      batch.member === member && batch.sequence === sequence ? answerMissed() : undefined,
    )
  }

  /**
   * This machine was loaded from a snapshot. A snapshot has the effect of entries, but not their
   * answers. It also has no entry numbers of removed members, so for them it is unknown which entries
   * were applied. There are two exceptions. If this log never was the one that the author had read,
   * none was applied. If this log was shorter, following it will deliver them.
   */
  loaded({ members, position, history }: Machine): void {
    const failure = (batch: Batch): Error | undefined => {
      if (members.has(batch.member)) {
        return batch.sequence <= members.sequenceOf(batch.member) ? answerMissed() : undefined
      }
      const isOther = (history.at(batch.asOf)?.history ?? batch.history) !== batch.history
      return isOther || position < batch.asOf ? undefined : memberForgotten()
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

  #takeOut(matches: (batch: Batch) => boolean): Batch[] {
    const taken = this.#batches.filter(matches)
    if (taken.length > 0) this.#batches = this.#batches.filter((batch) => !matches(batch))
    for (const batch of taken) batch.isOver = true
    return taken
  }
}

export function failAll({ calls, renewals }: Batch, error: Error): void {
  for (const call of [...calls, ...renewals]) call.fail(error)
}
