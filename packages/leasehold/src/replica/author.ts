import { type EncodedCommands, encodeEntry } from './entry.ts'
import type { Machine } from './machine.ts'
import type { Batch } from './own-entries.ts'

/** An entry, without the calls that it carries. */
type Written = Omit<Batch, 'calls' | 'renewals' | 'isOver'>

/** Writes the entries of one replica: under which name, and with which numbers. */
export class Author {
  /** The member that the replica is, or wants to become. */
  member = ''
  readonly #time: () => number
  #sequence = 0

  /** `time` is that of the log. */
  constructor(time: () => number) {
    this.#time = time
  }

  /** Begins again under another name. */
  rename(member: string): void {
    this.member = member
    this.#sequence = 0
  }

  /** The next entry, which says what its author has applied so far. */
  write(machine: Machine, commands: EncodedCommands): Written {
    const read = { asOf: machine.position, history: machine.history.value }
    const own = { member: this.member, sequence: ++this.#sequence, ...read }
    const bytes = encodeEntry({
      ...own,
      epoch: machine.isFounded ? machine.epoch : this.member,
      revision: machine.isFounded ? machine.kernel.revision : 0,
      checksum: machine.checksum.value,
      time: this.#time(),
      commands,
    })
    return { ...own, bytes }
  }
}
