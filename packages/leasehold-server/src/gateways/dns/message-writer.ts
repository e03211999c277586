import { addressBytes } from './address-bytes.ts'

/** The types that we answer with, by their numbers. */
export const TYPES = { A: 1, NS: 2, SOA: 6, HINFO: 13, AAAA: 28, SRV: 33, OPT: 41 } as const

export type RecordData =
  | { readonly type: 'A' | 'AAAA'; readonly address: string }
  | { readonly type: 'NS'; readonly target: string }
  | {
      readonly type: 'SRV'
      readonly weight: number
      readonly port: number
      readonly target: string
    }
  | { readonly type: 'SOA'; readonly serial: number; readonly minimum: number }
  | { readonly type: 'HINFO'; readonly cpu: string }

export interface ResourceRecord {
  /** In lower case, without a dot at the end. */
  readonly name: string
  readonly ttl: number
  readonly data: RecordData
}

const HEADER_BYTES = 12
const CLASS_IN = 1
const MESSAGE_MAX = 65_535
const SCRATCH = Buffer.allocUnsafe(MESSAGE_MAX)
/** A pointer has 14 bits. */
const POINTER_MAX = 0x3fff
const SECTIONS = ['answers', 'authorities', 'additionals'] as const
type Section = (typeof SECTIONS)[number]

/**
 * Writes one message with compressed names, up to a limit of bytes. Without compression it would be
 * twice as long. One at a time: all of them use the same memory until they are finished.
 */
export class MessageWriter {
  readonly #bytes = SCRATCH
  readonly #limit: number
  /** Where each name and each end of a name begins. */
  readonly #names = new Map<string, number>()
  readonly #counts: Record<Section, number> = { answers: 0, authorities: 0, additionals: 0 }
  #length = HEADER_BYTES

  /**
   * `question` is the question of the query as it was sent, and `name` is its name. `reserved` bytes
   * of the limit are for the EDNS record.
   */
  constructor(limit: number, question: Buffer, name: string, reserved: number) {
    this.#limit = limit - reserved
    question.copy(this.#bytes, HEADER_BYTES)
    this.#length += question.length
    let at = HEADER_BYTES
    for (let rest = name; rest !== ''; ) {
      this.#names.set(rest, at)
      const dot = rest.indexOf('.')
      at += (dot < 0 ? rest.length : dot) + 1
      rest = dot < 0 ? '' : rest.slice(dot + 1)
    }
  }

  /** Adds a record. Returns false, and adds nothing, if the limit leaves no space for it. */
  add(section: Section, { name, ttl, data }: ResourceRecord): boolean {
    const start = this.#length
    const added: string[] = []
    const isWritten =
      this.#name(name, added) && this.#fixed(TYPES[data.type], ttl) && this.#data(data, added)
    if (isWritten) this.#counts[section]++
    else {
      this.#length = start
      for (const each of added) this.#names.delete(each)
    }
    return isWritten
  }

  /** Adds the record with which we answer an EDNS query, in the space that is reserved for it. */
  addEdns(payloadSize: number, extendedCode: number): void {
    const bytes = this.#bytes
    let at = this.#length
    bytes[at++] = 0
    at = bytes.writeUInt16BE(TYPES.OPT, at)
    at = bytes.writeUInt16BE(payloadSize, at)
    at = bytes.writeUInt32BE(extendedCode << 24, at)
    this.#length = bytes.writeUInt16BE(0, at)
    this.#counts.additionals++
  }

  /** The whole message. Its id is 0: the sender of a cached message sets it. */
  finish(flags: number): Buffer {
    const bytes = this.#bytes
    bytes.writeUInt16BE(0, 0)
    bytes.writeUInt16BE(flags, 2)
    bytes.writeUInt16BE(1, 4)
    for (const [index, section] of SECTIONS.entries()) {
      bytes.writeUInt16BE(this.#counts[section], 6 + 2 * index)
    }
    return Buffer.from(bytes.subarray(0, this.#length))
  }

  #fixed(type: number, ttl: number): boolean {
    if (this.#length + 10 > this.#limit) return false
    this.#length = this.#bytes.writeUInt16BE(type, this.#length)
    this.#length = this.#bytes.writeUInt16BE(CLASS_IN, this.#length)
    this.#length = this.#bytes.writeUInt32BE(ttl, this.#length)
    return true
  }

  /** Writes the length of the data, and the data. */
  #data(data: RecordData, added: string[]): boolean {
    const start = this.#length
    this.#length += 2
    const isWritten = this.#content(data, added)
    if (isWritten) this.#bytes.writeUInt16BE(this.#length - start - 2, start)
    return isWritten
  }

  #content(data: RecordData, added: string[]): boolean {
    switch (data.type) {
      case 'A':
      case 'AAAA':
        return this.#address(addressBytes(data.address))
      case 'NS':
        return this.#name(data.target, added)
      case 'SRV':
        // RFC 2782 forbids to compress the target. Later names may point to it.
        return this.#numbers(2, 0, data.weight, data.port) && this.#plain(data.target, added)
      case 'HINFO':
        return this.#string(data.cpu) && this.#string('')
      case 'SOA':
        return this.#soa(data, added)
    }
  }

  #soa({ serial, minimum }: Extract<RecordData, { type: 'SOA' }>, added: string[]): boolean {
    const names = this.#name('ns.leasehold', added) && this.#name('hostmaster.leasehold', added)
    return names && this.#numbers(4, serial, 3600, 600, 86_400, minimum)
  }

  #address(bytes: readonly number[]): boolean {
    if (this.#length + bytes.length > this.#limit) return false
    for (const byte of bytes) this.#bytes[this.#length++] = byte
    return true
  }

  #numbers(width: 2 | 4, ...numbers: number[]): boolean {
    if (this.#length + width * numbers.length > this.#limit) return false
    for (const number of numbers)
      this.#length = this.#bytes.writeUIntBE(number, this.#length, width)
    return true
  }

  #string(ascii: string): boolean {
    if (this.#length + ascii.length + 1 > this.#limit) return false
    this.#bytes[this.#length++] = ascii.length
    this.#length += this.#bytes.write(ascii, this.#length, 'latin1')
    return true
  }

  #plain(name: string, added: string[]): boolean {
    for (let rest = name; rest !== ''; ) {
      this.#remember(rest, added)
      const dot = rest.indexOf('.')
      if (!this.#string(dot < 0 ? rest : rest.slice(0, dot))) return false
      rest = dot < 0 ? '' : rest.slice(dot + 1)
    }
    return this.#end()
  }

  #name(name: string, added: string[]): boolean {
    for (let rest = name; rest !== ''; ) {
      const known = this.#names.get(rest)
      if (known !== undefined) return this.#numbers(2, 0xc000 | known)
      this.#remember(rest, added)
      const dot = rest.indexOf('.')
      if (!this.#string(dot < 0 ? rest : rest.slice(0, dot))) return false
      rest = dot < 0 ? '' : rest.slice(dot + 1)
    }
    return this.#end()
  }

  #end(): boolean {
    if (this.#length >= this.#limit) return false
    this.#bytes[this.#length++] = 0
    return true
  }

  #remember(name: string, added: string[]): void {
    if (this.#length > POINTER_MAX || this.#names.has(name)) return
    this.#names.set(name, this.#length)
    added.push(name)
  }
}
