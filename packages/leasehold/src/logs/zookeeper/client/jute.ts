/** Jute, the encoding of ZooKeeper's protocol: big-endian numbers, and bytes after their length. */
export type Field = { readonly int: number } | { readonly flag: boolean } | string | Uint8Array

/** Encodes a packet: the length, then its fields one after the other. */
export function packet(...fields: readonly Field[]): Buffer {
  const parts = fields.flatMap(encode)
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  return Buffer.concat([int32(length), ...parts], 4 + length)
}

function encode(field: Field): Uint8Array[] {
  if (typeof field === 'string') return encode(Buffer.from(field))
  if (field instanceof Uint8Array) return [int32(field.length), field]
  return 'int' in field ? [int32(field.int)] : [Buffer.from([field.flag ? 1 : 0])]
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

/** Two fields of 0: a long is only ever sent as 0. */
export const ZERO: readonly Field[] = [{ int: 0 }, { int: 0 }]

export class JuteReader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  int(): number {
    this.#at += 4
    return this.#bytes.readInt32BE(this.#at - 4)
  }

  flag(): boolean {
    return this.#bytes.readUInt8(this.#at++) !== 0
  }

  bytes(): Buffer {
    const length = Math.max(0, this.int())
    this.#at += length
    return this.#bytes.subarray(this.#at - length, this.#at)
  }

  string(): string {
    return this.bytes().toString()
  }

  skip(bytes: number): void {
    this.#at += bytes
  }
}
