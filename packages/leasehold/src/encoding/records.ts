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

/** What a record begins with. In files: never change what one of them means, only add. */
const GRANTED = 1
const CAPPED = 2
const ENDED = 3
const CLAIMED = 4
const UPDATED = 5
const RELEASED = 6
const ANSWERED = 7
const TENURE = 8
const REMEMBERED = 9

/** Stands for the end that was written last: leases that end together have one. */
const SAME_END = 0xff

/**
 * Turns what a journal is told into bytes.
 *
 * Time stands still while a store is closed, so what is written of a lease's end of life must not
 * be on the clock of the process that wrote it. It is on the log's own time instead, which is the
 * process's less `shift`, and goes on in the next process where it stopped in this one. All other
 * times are there to be shown to people and are written as they are.
 */
export class RecordEncoder implements ChangeSink {
  #bytes = new ByteWriter()
  #spare = new ByteWriter()
  #lastEnd: End | undefined
  readonly #onFirst: () => void
  shift = 0
  /** Whether a lease with an end of its life was ever written: only then does time matter. */
  mortal = false

  /** `onFirst` is called when there was nothing to write and now there is. */
  constructor(onFirst: () => void = () => {}) {
    this.#onFirst = onFirst
  }

  get length(): number {
    return this.#bytes.length
  }

  /** The bytes since the last `take`. They stay as they are until the `take` after this one. */
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
    bytes.text(lease.holder)
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
    bytes.text(claim.key)
    bytes.integer(claim.token)
    bytes.byte(claim.mode === 'shared' ? 1 : 0)
    bytes.integer(claim.limit)
    bytes.optionalText(claim.value)
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
    bytes.text(key)
    bytes.integer(token)
    bytes.optionalText(value)
  }

  released(revision: Revision, slot: number, at: Time, key: Key, token: Token, end: End): void {
    const bytes = this.#begin(RELEASED, revision, slot)
    bytes.float(at)
    bytes.text(key)
    bytes.integer(token)
    this.#end(end)
  }

  answered(request: string, answer: Answer): void {
    const bytes = this.#first(ANSWERED)
    bytes.text(request)
    putAnswer(bytes, answer)
  }

  tenure(key: Key, tenure: Tenure): void {
    const bytes = this.#first(TENURE)
    bytes.text(key)
    bytes.integer(tenure.token)
    bytes.text(tenure.holder)
    bytes.text(tenure.lease)
    bytes.number(tenure.heldSince)
    bytes.number(tenure.endedAt)
    this.#end(tenure.end)
  }

  remembered(lease: LeaseId, end: End): void {
    this.#first(REMEMBERED).text(lease)
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
    if (time !== Infinity) this.mortal = true
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

/** Tells a journal what the bytes of one `take` say. `wants` may decline what is about a slot. */
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
      decoder.tellMemory(kind, changeSink)
    } else {
      const revision = bytes.integer()
      const slot = bytes.integer()
      // A record that is not wanted must still be read, to find the one after it.
      decoder.tell(kind, revision, slot, wants(revision, slot) ? changeSink : DISCARD_CHANGES)
    }
  }
  return count
}

class RecordDecoder {
  readonly #bytes: ByteReader
  #lastEnd: End | undefined

  constructor(bytes: ByteReader) {
    this.#bytes = bytes
  }

  tell(kind: number, revision: Revision, slot: number, changeSink: ChangeSink): void {
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
        const key = bytes.text()
        const token = bytes.integer()
        changeSink.updated(revision, slot, at, key, token, bytes.optionalText())
        break
      }
      case RELEASED: {
        const at = bytes.float()
        const key = bytes.text()
        const token = bytes.integer()
        changeSink.released(revision, slot, at, key, token, this.#end())
        break
      }
      default:
        throw new RangeError(`a record has the unknown kind ${kind}`)
    }
  }

  tellMemory(kind: number, changeSink: ChangeSink): void {
    const bytes = this.#bytes
    switch (kind) {
      case ANSWERED: {
        const request = bytes.text()
        changeSink.answered(request, takeAnswer(bytes))
        break
      }
      case TENURE: {
        const key = bytes.text()
        const token = bytes.integer()
        const holder = bytes.text()
        const lease = bytes.text()
        const heldSince = bytes.number()
        const endedAt = bytes.number()
        const end = this.#end()
        changeSink.tenure(key, { token, holder, lease, heldSince, endedAt, end })
        break
      }
      case REMEMBERED: {
        const lease = bytes.text()
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
    const holder = bytes.text()
    const ttl = bytes.number()
    const grace = bytes.number()
    const endOfLife = bytes.number()
    const parent = bytes.integer() - 1
    return { born, at, holder, ttl, grace, endOfLife, parent, labels: takeLabels(bytes) }
  }

  #claim(): GrantedClaim {
    const bytes = this.#bytes
    const at = bytes.float()
    const key = bytes.text()
    const token = bytes.integer()
    const mode = bytes.byte() === 1 ? 'shared' : 'exclusive'
    const limit = bytes.integer()
    const value = bytes.optionalText()
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
    bytes.text(name)
    bytes.text(value)
  }
}

export function takeLabels(bytes: ByteReader): Labels | undefined {
  const count = bytes.integer()
  if (count === 0) return undefined
  const entries: [string, string][] = []
  for (let index = 1; index < count; index++) entries.push([bytes.text(), bytes.text()])
  // A label may be called __proto__: defining it, unlike assigning it, makes it a label.
  return Object.fromEntries(entries)
}
