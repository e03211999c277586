import { type EncodedCommands, encodeEntry } from '../entry.ts'
import type { Machine } from '../state/index.ts'
import type { Batch } from './own-entries.ts'

/** An encoded entry, without its calls. */
type Written = Omit<Batch, 'calls' | 'renewals' | 'isOver'>

/** Writes the entries of one replica. Knows its member name, and numbers the entries. */
export class Author {
  /** The name under which the replica is a member, or joins. */
  member = ''
  readonly #time: () => number
  #sequence = 0

  /** `time` returns the time of the log. */
  constructor(time: () => number) {
    this.#time = time
  }

  /** Starts numbering again, under another name. */
  rename(member: string): void {
    this.member = member
    this.#sequence = 0
  }

  /** The next entry. It states what its author has applied so far. */
  write(machine: Machine, commands: EncodedCommands): Written {
    const read = { asOf: machine.position, history: machine.history.value }
    const own = { member: this.member, sequence: ++this.#sequence, ...read }
    const bytes = encodeEntry({
      ...own,
      epoch: machine.isInitialized ? machine.epoch : this.member,
      revision: machine.isInitialized ? machine.kernel.revision : 0,
      checksum: machine.checksum.value,
      time: this.#time(),
      commands,
    })
    return { ...own, bytes }
  }
}
