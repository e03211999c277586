/**
 * The little of protobuf's wire format that etcd's messages need: integers, bytes and messages
 * within messages. Integers are JavaScript numbers: revisions, counts and the lease ids that we
 * choose are below 2^53, and of those that others choose we ask nothing but whether they are there.
 */
export type Bytes = string | Uint8Array

const INTEGER = 0
const DELIMITED = 2

/** Writes one message after the other into one piece of memory that it keeps. */
export class Writer {
  #buffer = Buffer.allocUnsafe(1024)
  #at = 0

  /** Zero is what a field has that is not written. */
  integer(field: number, value: number): this {
    if (value === 0) return this
    this.#room(20)
    this.#varint(field * 8 + INTEGER)
    this.#varint(value)
    return this
  }

  flag(field: number, value: boolean | undefined): this {
    return this.integer(field, value ? 1 : 0)
  }

  bytes(field: number, bytes: Bytes): this {
    if (bytes.length === 0) return this
    return this.message(field, () => this.#raw(bytes))
  }

  /** A message in a field; it is written by `write`, its length comes before it. */
  message(field: number, write: () => void): this {
    this.#room(10)
    this.#varint(field * 8 + DELIMITED)
    const start = ++this.#at
    write()
    const length = this.#at - start
    if (length < 128) {
      this.#buffer[start - 1] = length
      return this
    }
    // The length needs more than the byte that was left for it: what was written makes room.
    let extra = 0
    for (let rest = Math.floor(length / 128); rest > 0; rest = Math.floor(rest / 128)) extra++
    this.#room(extra)
    this.#buffer.copyWithin(start + extra, start, this.#at)
    this.#at = start - 1
    this.#varint(length)
    this.#at += length
    return this
  }

  /** What was written, as a copy; the writer begins anew. */
  finish(): Buffer {
    const bytes = Buffer.from(this.#buffer.subarray(0, this.#at))
    this.#at = 0
    return bytes
  }

  #raw(bytes: Bytes): void {
    if (typeof bytes === 'string') {
      this.#room(bytes.length * 3)
      this.#at += this.#buffer.write(bytes, this.#at, 'utf8')
    } else {
      this.#room(bytes.length)
      this.#buffer.set(bytes, this.#at)
      this.#at += bytes.length
    }
  }

  #varint(value: number): void {
    let rest = value
    while (rest >= 128) {
      this.#buffer[this.#at++] = (rest % 128) | 128
      rest = Math.floor(rest / 128)
    }
    this.#buffer[this.#at++] = rest
  }

  #room(bytes: number): void {
    if (this.#at + bytes <= this.#buffer.length) return
    const larger = Buffer.allocUnsafe((this.#at + bytes) * 2)
    this.#buffer.copy(larger, 0, 0, this.#at)
    this.#buffer = larger
  }
}

/** Reads the fields of a message one after the other; those that nobody asks for are passed over. */
export class Reader {
  readonly #bytes: Uint8Array
  readonly #end: number
  #at: number
  #wire = 0

  constructor(bytes: Uint8Array, from = 0, to = bytes.length) {
    this.#bytes = bytes
    this.#at = from
    this.#end = to
  }

  /** The number of the next field, whose value must then be read or skipped; 0 at the end. */
  next(): number {
    if (this.#at >= this.#end) return 0
    const tag = this.integer()
    this.#wire = tag % 8
    return Math.floor(tag / 8)
  }

  integer(): number {
    let value = 0
    let scale = 1
    for (let count = 1; ; count++) {
      const byte = this.#bytes[this.#at++]
      if (byte === undefined || count > 10) throw new Error('a message of etcd is cut short')
      // Only a negative integer has ten bytes, and the only one that etcd sends is -1.
      if (count === 10) return -1
      value += (byte & 127) * scale
      if (byte < 128) return value
      scale *= 128
    }
  }

  text(): string {
    const { from, to } = this.#delimited()
    return (this.#bytes as Buffer).toString('utf8', from, to)
  }

  message(): Reader {
    const { from, to } = this.#delimited()
    return new Reader(this.#bytes, from, to)
  }

  skip(): void {
    if (this.#wire === INTEGER) this.integer()
    else if (this.#wire === DELIMITED) this.#delimited()
    else if (this.#wire === 1) this.#at += 8
    else if (this.#wire === 5) this.#at += 4
    else throw new Error(`a message of etcd has a field of the unknown kind ${this.#wire}`)
  }

  #delimited(): { from: number; to: number } {
    const length = this.integer()
    const from = this.#at
    const to = from + length
    if (to > this.#end) throw new Error('a message of etcd is cut short')
    this.#at = to
    return { from, to }
  }
}
