import type { ByteReader, ByteWriter } from '../../encoding/index.ts'
import type { Position } from '../../log/index.ts'
import type { Command, Entry } from '../entry.ts'

export interface Member {
  /** The number of its last applied entry. */
  sequence: number
  /** The position of that entry. */
  position: Position
  /** When this replica applied that entry, on its own clock. */
  seenAt: number
  /** The latest version of the lease rules that it knows. */
  semantics: number
}

/**
 * The processes that write to a log. Each numbers its entries, so that an entry counts once even if
 * its author appended it twice because the outcome of the first attempt was unknown.
 */
export class MemberTable {
  readonly #members = new Map<string, Member>()
  /** The position at which a member was last removed. */
  #removedAt: Position = 0

  get size(): number {
    return this.#members.size
  }

  has(id: string): boolean {
    return this.#members.has(id)
  }

  /** The index of a member among all, from 0: the first one acts if any of them could. */
  rank(id: string): number {
    let rank = 0
    for (const each of this.#members.keys()) if (each < id) rank++
    return rank
  }

  /** The number of this member's last applied entry; 0 if it is not a member. */
  sequenceOf(id: string): number {
    return this.#members.get(id)?.sequence ?? 0
  }

  put(bytes: ByteWriter): void {
    bytes.integer(this.#removedAt)
    bytes.integer(this.#members.size)
    for (const [id, { sequence, position, semantics }] of this.#members) {
      bytes.string(id)
      bytes.integer(sequence)
      bytes.integer(position)
      bytes.integer(semantics)
    }
  }

  /** Reads what `put` wrote. All members count as seen now. */
  take(bytes: ByteReader, now: number): void {
    this.#removedAt = bytes.integer()
    for (let left = bytes.integer(); left > 0; left--) {
      const [id, sequence, position] = [bytes.string(), bytes.integer(), bytes.integer()]
      this.#members.set(id, { sequence, position, seenAt: now, semantics: bytes.integer() })
    }
  }

  /**
   * What this member proposes about the members: to remove those that wrote nothing since this time,
   * on its clock; and, if it is the first, to use newer lease rules if all members know them.
   */
  proposals(member: string, since: number, semantics: number): Command[] {
    const proposals: Command[] = []
    const dead = this.silentSince(since).filter((id) => id !== member)
    if (dead.length > 0) proposals.push({ do: 'expel', members: dead })
    const known = this.semantics
    if (known > semantics && this.rank(member) === 0) {
      proposals.push({ do: 'upgrade', semantics: known })
    }
    return proposals
  }

  /** The members that wrote nothing since this time, on this replica's clock. */
  silentSince(time: number): string[] {
    const silent: string[] = []
    for (const [id, { seenAt }] of this.#members) if (seenAt <= time) silent.push(id)
    return silent
  }

  /** Whether this entry was already applied. */
  isRepeated({ member, sequence }: Entry): boolean {
    return sequence <= this.sequenceOf(member)
  }

  /**
   * Whether its author may write this entry. The table forgets a removed member and its entry numbers,
   * so a late copy of its first entry must not let it in again. Therefore a process may join only if
   * it has seen the last removal.
   */
  admits(entry: Entry): boolean {
    if (this.#members.has(entry.member)) return true
    return entry.asOf >= this.#removedAt && joining(entry) !== undefined
  }

  seen(entry: Entry, position: Position, now: number): void {
    const { member, sequence } = entry
    const semantics = joining(entry)?.semantics ?? this.#members.get(member)?.semantics ?? 0
    this.#members.set(member, { sequence, position, seenAt: now, semantics })
  }

  /** The latest version of the lease rules that all members know. */
  get semantics(): number {
    let least = Infinity
    for (const { semantics } of this.#members.values()) least = Math.min(least, semantics)
    return least
  }

  /** Removes those of these members that wrote nothing after `asOf`. */
  expel(ids: readonly string[], asOf: Position, position: Position): undefined {
    const silent = ids.filter((id) => (this.#members.get(id)?.position ?? Infinity) <= asOf)
    return this.remove(silent, position)
  }

  remove(ids: readonly string[], position: Position): undefined {
    for (const id of ids) if (this.#members.delete(id)) this.#removedAt = position
    return undefined
  }

  /** Removes all other members: they must join again. */
  removeAllBut(member: string, position: Position): void {
    this.remove(
      [...this.#members.keys()].filter((id) => id !== member),
      position,
    )
  }
}

function joining({ commands }: Entry): Extract<Command, { do: 'join' }> | undefined {
  return commands.find((command) => command.do === 'join')
}
