/** A growing buffer for numbers and strings. */
export class ByteWriter {
  #bytes: Buffer
  #length = 0

  constructor(capacity = 4096) {
    this.#bytes = Buffer.allocUnsafe(capacity)
  }

  get length(): number {
    return this.#length
  }

  /** The bytes written so far. Valid until the next write. */
  view(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  clear(): void {
    this.#length = 0
    // One huge batch must not keep its memory forever.
    if (this.#bytes.length > CAPACITY_KEPT) this.#bytes = Buffer.allocUnsafe(4096)
  }

  /** Takes back what was written after this length. */
  cut(length: number): void {
    this.#length = length
  }

  bytes(value: Uint8Array): void {
    this.#reserve(value.length)
    this.#bytes.set(value, this.#length)
    this.#length += value.length
  }

  byte(value: number): void {
    this.#reserve(1)
    this.#bytes[this.#length++] = value
  }

  /** An integer from 0 to 2^53 - 1, in as few bytes as it needs. */
  integer(value: number): void {
    this.#reserve(8)
    const bytes = this.#bytes
    let rest = value
    while (rest > 0x7fffffff) {
      bytes[this.#length++] = (rest % 128) | 0x80
      rest = Math.floor(rest / 128)
    }
    while (rest > 0x7f) {
      bytes[this.#length++] = (rest & 0x7f) | 0x80
      rest >>>= 7
    }
    bytes[this.#length++] = rest
  }

  /** Any number. Small integers and Infinity, which are the most common, take few bytes. */
  number(value: number): void {
    if (Number.isInteger(value) && value >= 0 && value <= INTEGER_MAX && !Object.is(value, -0)) {
      this.integer(value * 2)
    } else if (value === Infinity) {
      this.byte(INFINITE)
    } else {
      this.byte(FLOAT)
      this.float(value)
    }
  }

  float(value: number): void {
    this.#reserve(8)
    this.#length = this.#bytes.writeDoubleLE(value, this.#length)
  }

  string(value: string): void {
    const { length } = value
    if (length > SHORT) {
      const size = Buffer.byteLength(value)
      this.integer(size)
      this.#reserve(size)
      this.#length += this.#bytes.utf8Write(value, this.#length, size)
      return
    }
    this.#reserve(1 + length * 3)
    const bytes = this.#bytes
    const start = this.#length + 1
    // A call into the engine costs more than a short string, and nearly all are ASCII.
    let index = 0
    for (; index < length; index++) {
      const unit = value.charCodeAt(index)
      if (unit > 0x7f) break
      bytes[start + index] = unit
    }
    const size = index === length ? length : bytes.utf8Write(value, start)
    bytes[start - 1] = size
    this.#length = start + size
  }

  optionalString(value: string | undefined): void {
    if (value === undefined) {
      this.byte(0)
    } else {
      this.byte(1)
      this.string(value)
    }
  }

  #reserve(size: number): void {
    const needed = this.#length + size
    if (needed <= this.#bytes.length) return
    const grown = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2))
    this.#bytes.copy(grown, 0, 0, this.#length)
    this.#bytes = grown
  }
}

/** Reads the bytes of a `ByteWriter`. Throws a `RangeError` if they are invalid. */
export class ByteReader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /** How many bytes have been read. */
  get position(): number {
    return this.#at
  }

  get done(): boolean {
    return this.#at >= this.#bytes.length
  }

  skip(bytes: number): void {
    this.#at += bytes
  }

  byte(): number {
    const value = this.#bytes[this.#at++]
    if (value === undefined) throw new RangeError('the bytes end within a value')
    return value
  }

  integer(): number {
    let value = 0
    let scale = 1
    for (;;) {
      const byte = this.byte()
      value += (byte & 0x7f) * scale
      if (byte < 0x80) break
      scale *= 128
    }
    if (value > Number.MAX_SAFE_INTEGER) throw new RangeError('an integer is out of range')
    return value
  }

  number(): number {
    const value = this.integer()
    if (value % 2 === 0) return value / 2
    if (value === INFINITE) return Infinity
    if (value === FLOAT) return this.float()
    throw new RangeError(`a number has the unknown form ${value}`)
  }

  float(): number {
    const value = this.#bytes.readDoubleLE(this.#at)
    this.#at += 8
    return value
  }

  string(): string {
    const size = this.integer()
    const end = this.#at + size
    if (end > this.#bytes.length) throw new RangeError('the bytes end within a string')
    const value = this.#bytes.utf8Slice(this.#at, end)
    this.#at = end
    return value
  }

  /** Like `string`, but returns `known` itself if the bytes spell it: the same string is kept once. */
  stringLike(known: string): string {
    const bytes = this.#bytes
    const size = bytes[this.#at]
    // A longer string, or one that is not ASCII, has other bytes.
    if (size !== known.length || size > SHORT) return this.string()
    const start = this.#at + 1
    for (let at = 0; at < size; at++) {
      const unit = known.charCodeAt(at)
      if (unit > 0x7f || bytes[start + at] !== unit) return this.string()
    }
    this.#at = start + size
    return known
  }

  optionalString(): string | undefined {
    return this.byte() === 0 ? undefined : this.string()
  }
}

/** A string of up to this many code units takes at most 126 bytes, so its size is one byte. */
const SHORT = 42
const CAPACITY_KEPT = 1 << 20
const INTEGER_MAX = 2 ** 51
const FLOAT = 1
const INFINITE = 3

declare global {
  // Node does not document them, but has always had both and uses them itself.
  interface Buffer {
    utf8Write(text: string, offset: number, length?: number): number
    utf8Slice(start: number, end: number): string
  }
}
