/** The part of protobuf that is used here: integers below 2^53, bytes, and messages. */
export type Value = number | string | Uint8Array
export type Fields = Readonly<Record<number, Value | readonly Value[]>>

/** Encodes a message from its fields by number. A list repeats its field. */
export function encode(fields: Fields): Buffer {
  const parts: Uint8Array[] = []
  for (const [number, values] of Object.entries(fields)) {
    for (const value of Array.isArray(values) ? values : [values as Value]) {
      if (typeof value === 'number') parts.push(varints(Number(number) * 8, value))
      else {
        const bytes = typeof value === 'string' ? Buffer.from(value) : value
        parts.push(varints(Number(number) * 8 + 2, bytes.length), bytes)
      }
    }
  }
  return Buffer.concat(parts)
}

function varints(...values: number[]): Uint8Array {
  const bytes: number[] = []
  for (let rest of values) {
    for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128)
    bytes.push(rest)
  }
  return Uint8Array.from(bytes)
}

/** A received message. A missing field has the value 0, or no bytes. */
export class Message {
  readonly #bytes: Buffer
  readonly #fields: { readonly number: number; readonly value: number | Buffer }[] = []
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
    while (this.#at < bytes.length) {
      const tag = this.#varint()
      const size = this.#varint()
      const value = tag % 8 === 2 ? bytes.subarray(this.#at, this.#at + size) : size
      if (typeof value !== 'number') this.#at += size
      if (this.#at > bytes.length || tag % 8 === 1 || tag % 8 > 2) {
        throw new Error('a protobuf message cannot be read')
      }
      this.#fields.push({ number: Math.floor(tag / 8), value })
    }
  }

  number(field: number): number {
    return Number(this.#values(field)[0] ?? 0)
  }

  bytes(field: number): Buffer {
    return (this.#values(field)[0] ?? Buffer.alloc(0)) as Buffer
  }

  message(field: number): Message {
    return new Message(this.bytes(field))
  }

  messages(field: number): Message[] {
    return this.#values(field).map((bytes) => new Message(bytes as Buffer))
  }

  #values(field: number): (number | Buffer)[] {
    return this.#fields.filter(({ number }) => number === field).map(({ value }) => value)
  }

  #varint(): number {
    for (let value = 0, scale = 1; ; scale *= 128) {
      const byte = this.#bytes[this.#at++] ?? 0
      value += (byte % 128) * scale
      if (byte < 128) return value
    }
  }
}
