import type { RegistryView } from '../registry-view/index.ts'
import { MessageWriter, type ResourceRecord } from './message-writer.ts'
import { CODES, type Query, type Refusal, readQuery } from './query.ts'
import { type Found, Zone } from './zone.ts'

const RESPONSE = 0x8000
const AUTHORITATIVE = 0x0400
const TRUNCATED = 0x0200
const RECURSION_DESIRED = 0x0100
const EDNS_BYTES = 11
/** The extended code BADVERS is 16: its upper bits are in the EDNS record, and the lower are 0. */
const BAD_VERSION = 1
/** The size that we announce for the queries of a client. */
const OWN_PAYLOAD = 1232
/** The size of an answer to a client without EDNS, and the least for one with it. */
const PLAIN_BYTES = 512
const CACHED_BYTES_MAX = 16 * 1024 * 1024
/** The place that an entry of the cache needs besides its message, about. */
const ENTRY_BYTES = 512
/** The most different orders of the same addresses. */
const ORDERS_MAX = 16

/** Answers queries with what the registry view shows. It does not know sockets. */
export class Responder {
  readonly #view: RegistryView
  readonly #zone: Zone
  /** Messages of the current revision. Their ids and questions are those of another client. */
  readonly #cached = new Map<string, Buffer>()
  #cachedBytes = 0
  #cachedAt = -1
  #turn = 0

  constructor(view: RegistryView) {
    this.#view = view
    this.#zone = new Zone(view)
  }

  /** How many bytes of messages are kept for other clients with the same question. */
  get cachedBytes(): number {
    return this.#cachedBytes
  }

  /**
   * Answers a message, or returns `undefined` if it must not be answered. `most` is the most bytes
   * of the answer; over UDP, the size that the client accepts counts too.
   */
  answer(bytes: Buffer, most: number, isDatagram: boolean): Buffer | undefined {
    const query = readQuery(bytes)
    if (query === undefined) return undefined
    if ('code' in query) return refusal(query)
    const accepted = Math.max(PLAIN_BYTES, query.edns?.size ?? 0)
    return this.#reply(query, isDatagram ? Math.min(most, accepted) : most)
  }

  #reply(query: Query, limit: number): Buffer {
    if (this.#cachedAt !== this.#view.revision) {
      this.#cached.clear()
      this.#cachedBytes = 0
      this.#cachedAt = this.#view.revision
    }
    const { id, question, name, type, edns, wantsRecursion } = query
    const order = this.#turn++ % ORDERS_MAX
    const key = `${type} ${name} ${limit} ${edns?.version} ${order}`
    let message = this.#cached.get(key)
    if (message === undefined) {
      message = this.#write(query, limit, order)
      if (isSuccess(message)) this.#keep(key, message)
    }
    // The client may have written the name in other letters, and expects its own.
    const copy = Buffer.from(message)
    question.copy(copy, 12)
    copy.writeUInt16BE(id, 0)
    if (wantsRecursion) copy[2]! |= RECURSION_DESIRED >> 8
    return copy
  }

  /** Keeps a message, and forgets those that were kept first if there are too many. */
  #keep(key: string, message: Buffer): void {
    this.#cached.set(key, message)
    this.#cachedBytes += message.length + ENTRY_BYTES
    for (const [oldest, { length }] of this.#cached) {
      if (this.#cachedBytes <= CACHED_BYTES_MAX) return
      this.#cached.delete(oldest)
      this.#cachedBytes -= length + ENTRY_BYTES
    }
  }

  #write({ question, name, type, edns }: Query, limit: number, order: number): Buffer {
    const isUnknownVersion = edns !== undefined && edns.version > 0
    const found = isUnknownVersion ? undefined : this.#zone.find(name, type)
    const reserved = edns === undefined ? 0 : EDNS_BYTES
    const writer = new MessageWriter(limit, question, name, reserved)
    const isTruncated = found !== undefined && !addRecords(writer, found, this.#zone.soa, order)
    if (edns !== undefined) writer.addEdns(OWN_PAYLOAD, isUnknownVersion ? BAD_VERSION : 0)
    const isOurs = found !== undefined && found.existence !== 'elsewhere'
    const flags =
      RESPONSE | (isOurs ? AUTHORITATIVE : 0) | (isTruncated ? TRUNCATED : 0) | codeOf(found)
    return writer.finish(flags)
  }
}

/** Returns whether all answers had space. Missing glue is no truncation: a client can ask for it. */
function addRecords(
  writer: MessageWriter,
  { existence, answers, glue, rotates }: Found,
  soa: ResourceRecord,
  order: number,
): boolean {
  if (existence === 'elsewhere') return true
  if (answers.length === 0) writer.add('authorities', soa)
  const first = rotates && answers.length > 0 ? order % answers.length : 0
  const ordered = [...answers.slice(first), ...answers.slice(0, first)]
  const areAllAdded = ordered.every((record) => writer.add('answers', record))
  if (areAllAdded) for (const record of glue) if (!writer.add('additionals', record)) break
  return areAllAdded
}

function codeOf(found: Found | undefined): number {
  if (found === undefined) return CODES.noError
  if (found.existence === 'elsewhere') return CODES.refused
  return found.existence === 'exists' ? CODES.noError : CODES.nameError
}

/** Names that do not exist are not cached: there is no end of them. */
function isSuccess(message: Buffer): boolean {
  return (message[3]! & 15) === CODES.noError
}

/** A header without a question: that of the query may be what is malformed. */
function refusal({ id, opcode, code }: Refusal): Buffer {
  const message = Buffer.alloc(12)
  message.writeUInt16BE(id, 0)
  message.writeUInt16BE(RESPONSE | (opcode << 11) | code, 2)
  return message
}
