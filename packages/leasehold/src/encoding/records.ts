import {
  type Answer,
  type ChangeSink,
  DISCARD_CHANGES,
  type GrantedClaim,
  type GrantedLease,
} from '../kernel/index.ts'
import type { End, Key, Labels, LeaseId, Revision, Tenure, Time, Token } from '../port/index.ts'
import { putAnswer, putEnd, takeAnswer, takeEnd } from './answers.ts'
import { ByteReader, ByteWriter } from './bytes.ts'

/** The first byte of a record. They are in files: never change the meaning of one, only add new ones. */
const GRANTED = 1
const CAPPED = 2
const ENDED = 3
const CLAIMED = 4
const UPDATED = 5
const RELEASED = 6
const ANSWERED = 7
const TENURE = 8
const REMEMBERED = 9

/** Stands for the same end as in the record before: leases that end together have the same end. */
const SAME_END = 0xff

/**
 * Encodes the changes of a kernel.
 *
 * Time stops while a store is closed, so a lease's end of life must not be written on the clock of
 * the process. It is written on the log's own time: the time of the process minus `shift`. Log time
 * continues in the next process where it stopped in this one. All other times are only for display
 * and are written unchanged.
 */
export class RecordEncoder implements ChangeSink {
  #bytes = new ByteWriter()
  #spare = new ByteWriter()
  #lastEnd: End | undefined
  readonly #onFirst: () => void
  shift = 0
  /** Whether a lease with a finite life was ever written: only then does time matter. */
  hasFiniteLives = false

  /** `onFirst` is called when the encoder was empty and gets its first change. */
  constructor(onFirst: () => void = () => {}) {
    this.#onFirst = onFirst
  }

  get length(): number {
    return this.#bytes.length
  }

  /** The bytes since the last `take`. They stay valid until the next `take`. */
  take(): Buffer {
    const taken = this.#bytes
    this.#bytes = this.#spare
    this.#bytes.clear()
    this.#spare = taken
    this.#lastEnd = undefined
    return taken.view()
  }

  granted(revision: Revision, slot: number, lease: GrantedLease): void {
    const bytes = this.#begin(GRANTED, revision, slot)
    bytes.integer(lease.born)
    bytes.float(lease.at)
    bytes.string(lease.holder)
    bytes.number(lease.ttl)
    bytes.number(lease.grace)
    this.#endOfLife(lease.endOfLife)
    bytes.integer(lease.parent + 1)
    putLabels(bytes, lease.labels)
  }

  capped(revision: Revision, slot: number, at: Time, endOfLife: Time, end: End): void {
    this.#begin(CAPPED, revision, slot).float(at)
    this.#endOfLife(endOfLife)
    this.#end(end)
  }

  ended(revision: Revision, slot: number, at: Time, end: End): void {
    this.#begin(ENDED, revision, slot).float(at)
    this.#end(end)
  }

  claimed(revision: Revision, slot: number, claim: GrantedClaim): void {
    const bytes = this.#begin(CLAIMED, revision, slot)
    bytes.float(claim.at)
    bytes.string(claim.key)
    bytes.integer(claim.token)
    bytes.byte(claim.mode === 'shared' ? 1 : 0)
    bytes.integer(claim.limit)
    bytes.optionalString(claim.value)
    bytes.number(claim.heldSince)
  }

  updated(
    revision: Revision,
    slot: number,
    at: Time,
    key: Key,
    token: Token,
    value: string | undefined,
  ): void {
    const bytes = this.#begin(UPDATED, revision, slot)
    bytes.float(at)
    bytes.string(key)
    bytes.integer(token)
    bytes.optionalString(value)
  }

  released(revision: Revision, slot: number, at: Time, key: Key, token: Token, end: End): void {
    const bytes = this.#begin(RELEASED, revision, slot)
    bytes.float(at)
    bytes.string(key)
    bytes.integer(token)
    this.#end(end)
  }

  answered(request: string, answer: Answer): void {
    const bytes = this.#first(ANSWERED)
    bytes.string(request)
    putAnswer(bytes, answer)
  }

  tenure(key: Key, tenure: Tenure): void {
    const bytes = this.#first(TENURE)
    bytes.string(key)
    bytes.integer(tenure.token)
    bytes.string(tenure.holder)
    bytes.string(tenure.lease)
    bytes.number(tenure.heldSince)
    bytes.number(tenure.endedAt)
    this.#end(tenure.end)
  }

  remembered(lease: LeaseId, end: End): void {
    this.#first(REMEMBERED).string(lease)
    this.#end(end)
  }

  #begin(kind: number, revision: Revision, slot: number): ByteWriter {
    const bytes = this.#first(kind)
    bytes.integer(revision)
    bytes.integer(slot)
    return bytes
  }

  #first(kind: number): ByteWriter {
    if (this.#bytes.length === 0) this.#onFirst()
    this.#bytes.byte(kind)
    return this.#bytes
  }

  #endOfLife(time: Time): void {
    if (time !== Infinity) this.hasFiniteLives = true
    this.#bytes.number(time - this.shift)
  }

  #end(end: End): void {
    if (end === this.#lastEnd) {
      this.#bytes.byte(SAME_END)
    } else {
      putEnd(this.#bytes, end)
      this.#lastEnd = end
    }
  }
}

/** Replays the bytes of one `take` into a sink. `wants` may decline the changes of a slot. */
export function decodeRecords(
  payload: Buffer,
  changeSink: ChangeSink,
  wants: (revision: Revision, slot: number) => boolean,
): number {
  const bytes = new ByteReader(payload)
  const decoder = new RecordDecoder(bytes)
  let count = 0
  for (; !bytes.done; count++) {
    const kind = bytes.byte()
    if (kind >= ANSWERED) {
      decoder.decodeRetained(kind, changeSink)
    } else {
      const revision = bytes.integer()
      const slot = bytes.integer()
      // A declined record must still be read, to find the next one.
      decoder.decode(kind, revision, slot, wants(revision, slot) ? changeSink : DISCARD_CHANGES)
    }
  }
  return count
}

class RecordDecoder {
  readonly #bytes: ByteReader
  #lastEnd: End | undefined
  #lastHolder = ''

  constructor(bytes: ByteReader) {
    this.#bytes = bytes
  }

  decode(kind: number, revision: Revision, slot: number, changeSink: ChangeSink): void {
    const bytes = this.#bytes
    switch (kind) {
      case GRANTED:
        changeSink.granted(revision, slot, this.#lease())
        break
      case CAPPED: {
        const at = bytes.float()
        const endOfLife = bytes.number()
        changeSink.capped(revision, slot, at, endOfLife, this.#end())
        break
      }
      case ENDED: {
        const at = bytes.float()
        changeSink.ended(revision, slot, at, this.#end())
        break
      }
      case CLAIMED:
        changeSink.claimed(revision, slot, this.#claim())
        break
      case UPDATED: {
        const at = bytes.float()
        const key = bytes.string()
        const token = bytes.integer()
        changeSink.updated(revision, slot, at, key, token, bytes.optionalString())
        break
      }
      case RELEASED: {
        const at = bytes.float()
        const key = bytes.string()
        const token = bytes.integer()
        changeSink.released(revision, slot, at, key, token, this.#end())
        break
      }
      default:
        throw new RangeError(`a record has the unknown kind ${kind}`)
    }
  }

  decodeRetained(kind: number, changeSink: ChangeSink): void {
    const bytes = this.#bytes
    switch (kind) {
      case ANSWERED: {
        const request = bytes.string()
        changeSink.answered(request, takeAnswer(bytes))
        break
      }
      case TENURE: {
        const key = bytes.string()
        const token = bytes.integer()
        const holder = bytes.string()
        const lease = bytes.string()
        const heldSince = bytes.number()
        const endedAt = bytes.number()
        const end = this.#end()
        changeSink.tenure(key, { token, holder, lease, heldSince, endedAt, end })
        break
      }
      case REMEMBERED: {
        const lease = bytes.string()
        changeSink.remembered(lease, this.#end())
        break
      }
      default:
        throw new RangeError(`a record has the unknown kind ${kind}`)
    }
  }

  #lease(): GrantedLease {
    const bytes = this.#bytes
    const born = bytes.integer()
    const at = bytes.float()
    // Leases in a row are often of one holder.
    this.#lastHolder = bytes.stringLike(this.#lastHolder)
    const holder = this.#lastHolder
    const ttl = bytes.number()
    const grace = bytes.number()
    const endOfLife = bytes.number()
    const parent = bytes.integer() - 1
    return { born, at, holder, ttl, grace, endOfLife, parent, labels: takeLabels(bytes) }
  }

  #claim(): GrantedClaim {
    const bytes = this.#bytes
    const at = bytes.float()
    const key = bytes.string()
    const token = bytes.integer()
    const mode = bytes.byte() === 1 ? 'shared' : 'exclusive'
    const limit = bytes.integer()
    const value = bytes.optionalString()
    return { at, key, token, mode, limit, value, heldSince: bytes.number() }
  }

  #end(): End {
    const form = this.#bytes.byte()
    if (form !== SAME_END) this.#lastEnd = takeEnd(this.#bytes, form)
    if (this.#lastEnd === undefined) throw new RangeError('an end refers to none before it')
    return this.#lastEnd
  }
}

export function putLabels(bytes: ByteWriter, labels: Labels | undefined): void {
  if (labels === undefined) {
    bytes.byte(0)
    return
  }
  const entries = Object.entries(labels)
  bytes.integer(entries.length + 1)
  for (const [name, value] of entries) {
    bytes.string(name)
    bytes.string(value)
  }
}

export function takeLabels(bytes: ByteReader): Labels | undefined {
  const count = bytes.integer()
  if (count === 0) return undefined
  const entries: [string, string][] = []
  for (let index = 1; index < count; index++) entries.push([bytes.string(), bytes.string()])
  // A label may be called __proto__: defining the property, unlike assigning it, makes it a label.
  return Object.fromEntries(entries)
}
