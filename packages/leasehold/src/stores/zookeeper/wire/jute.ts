/**
 * Jute, the encoding of ZooKeeper's protocol: big-endian numbers, texts and buffers with their
 * length before them. Only what this store sends and reads is here.
 */
export class JuteWriter {
  #buffer: Buffer
  /** Room is left at the front for the length of the whole. */
  #length = 4

  /** With room for so many bytes at first. */
  constructor(room = 256) {
    this.#buffer = Buffer.allocUnsafe(room)
  }

  int(value: number): this {
    this.#ensure(4)
    this.#length = this.#buffer.writeInt32BE(value, this.#length)
    return this
  }

  long(value: bigint): this {
    this.#ensure(8)
    this.#length = this.#buffer.writeBigInt64BE(value, this.#length)
    return this
  }

  boolean(value: boolean): this {
    this.#ensure(1)
    this.#length = this.#buffer.writeUInt8(value ? 1 : 0, this.#length)
    return this
  }

  text(value: string): this {
    const bytes = Buffer.byteLength(value)
    this.int(bytes)
    this.#ensure(bytes)
    this.#length += this.#buffer.write(value, this.#length)
    return this
  }

  buffer(value: Buffer): this {
    this.int(value.length)
    this.#ensure(value.length)
    this.#length += value.copy(this.#buffer, this.#length)
    return this
  }

  /** The packet, with its length in front. */
  finish(): Buffer {
    this.#buffer.writeInt32BE(this.#length - 4, 0)
    return this.#buffer.subarray(0, this.#length)
  }

  #ensure(bytes: number): void {
    const needed = this.#length + bytes
    if (needed <= this.#buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#buffer.length))
    this.#buffer.copy(larger, 0, 0, this.#length)
    this.#buffer = larger
  }
}

export class JuteReader {
  readonly #buffer: Buffer
  #at: number

  constructor(buffer: Buffer, at = 0) {
    this.#buffer = buffer
    this.#at = at
  }

  int(): number {
    const value = this.#buffer.readInt32BE(this.#at)
    this.#at += 4
    return value
  }

  long(): bigint {
    const value = this.#buffer.readBigInt64BE(this.#at)
    this.#at += 8
    return value
  }

  /**
   * A long as a number. A zxid has the epoch of the leader in its upper half: it is a safe integer
   * until the ensemble has had two million leaders.
   */
  number(): number {
    const high = this.#buffer.readInt32BE(this.#at)
    const low = this.#buffer.readUInt32BE(this.#at + 4)
    this.#at += 8
    return high * 0x1_0000_0000 + low
  }

  boolean(): boolean {
    return this.#buffer.readUInt8(this.#at++) !== 0
  }

  text(): string {
    const length = this.int()
    if (length <= 0) return ''
    const value = this.#buffer.toString('utf8', this.#at, this.#at + length)
    this.#at += length
    return value
  }

  buffer(): Buffer {
    const length = this.int()
    if (length <= 0) return Buffer.alloc(0)
    const value = this.#buffer.subarray(this.#at, this.#at + length)
    this.#at += length
    return value
  }

  texts(): string[] {
    const count = this.int()
    const list: string[] = []
    for (let at = 0; at < count; at++) list.push(this.text())
    return list
  }

  skip(bytes: number): void {
    this.#at += bytes
  }
}
