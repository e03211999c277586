import { TYPES } from './message-writer.ts'

/** A query that can be answered. */
export interface Query {
  readonly id: number
  /** The flag that the client wants recursion: the answer repeats it. */
  readonly wantsRecursion: boolean
  /** The question as it was sent. */
  readonly question: Buffer
  /**
   * In lower case, without a dot at the end, and exactly as many characters as the question has bytes
   * for it. A label of a client may contain a dot, which is `\0` here: no name of ours has that.
   */
  readonly name: string
  /** Such as `SRV`; `other` for all types that we have no records of. */
  readonly type: string
  readonly edns: Edns | undefined
}

interface Edns {
  /** The size of the answers that the client accepts over UDP. */
  readonly size: number
  readonly version: number
}

/** Answered with this code and nothing else; `undefined` for a message without an answer. */
export type Refusal = { readonly id: number; readonly opcode: number; readonly code: number }

export const CODES = {
  noError: 0,
  formatError: 1,
  serverFailure: 2,
  nameError: 3,
  notImplemented: 4,
  refused: 5,
} as const

const HEADER_BYTES = 12
const RESPONSE_BIT = 0x80
const LABEL_MAX = 63
/** With the lengths of its labels and the end. */
const NAME_BYTES_MAX = 255
const POINTER = 0xc0
/** A query has at most a few additional records: EDNS, and signatures that we ignore. */
const ADDITIONALS_MAX = 4
const CLASS_IN = 1
const CLASS_ANY = 255
const TYPE_ANY = 255
const TYPE_NAMES = new Map<number, string>([
  ...Object.entries(TYPES).map(([name, number]) => [number, name] as const),
  [TYPE_ANY, 'ANY'],
])

/**
 * Reads a query. Returns the refusal of a malformed or unsupported one, and `undefined` if there
 * must be no answer: to a response, because two servers would answer each other forever, and to
 * fewer bytes than a header.
 */
export function readQuery(bytes: Buffer): Query | Refusal | undefined {
  if (bytes.length < HEADER_BYTES || (bytes[2]! & RESPONSE_BIT) !== 0) return undefined
  const id = bytes.readUInt16BE(0)
  const opcode = (bytes[2]! >> 3) & 15
  if (opcode !== 0) return { id, opcode, code: CODES.notImplemented }
  const malformed = { id, opcode, code: CODES.formatError }
  const hasOneQuestion = bytes.readUInt16BE(4) === 1
  const hasNoRecords = bytes.readUInt32BE(6) === 0
  const nameEnd = endOfName(bytes, HEADER_BYTES, false)
  if (!hasOneQuestion || !hasNoRecords || nameEnd === undefined) return malformed
  const end = nameEnd + 4
  if (end > bytes.length) return malformed
  const edns = readEdns(bytes, end)
  if (edns === 'malformed') return malformed
  const kind = bytes.readUInt16BE(nameEnd + 2)
  if (kind !== CLASS_IN && kind !== CLASS_ANY) return { id, opcode, code: CODES.refused }
  return {
    id,
    wantsRecursion: (bytes[2]! & 1) !== 0,
    question: bytes.subarray(HEADER_BYTES, end),
    name: readName(bytes),
    type: TYPE_NAMES.get(bytes.readUInt16BE(nameEnd)) ?? 'other',
    edns,
  }
}

/**
 * The end of a name; `undefined` if it is malformed. A pointer is never followed: the question can
 * have none, and the names of additional records do not matter.
 */
function endOfName(bytes: Buffer, start: number, mayPoint: boolean): number | undefined {
  let at = start
  for (;;) {
    const length = bytes[at]
    if (length === undefined) return undefined
    if (mayPoint && length >= POINTER) return at + 2
    at += length + 1
    if (length > LABEL_MAX || at - start > NAME_BYTES_MAX) return undefined
    if (length === 0) return at
  }
}

/** The name of the question, which `endOfName` has checked. */
function readName(bytes: Buffer): string {
  const labels: string[] = []
  for (let at = HEADER_BYTES; bytes[at] !== 0; at += bytes[at]! + 1) {
    labels.push(bytes.toString('latin1', at + 1, at + 1 + bytes[at]!).replaceAll('.', '\0'))
  }
  return labels.join('.').toLowerCase()
}

/** Reads the additional records after the question. There may be one for EDNS, at the root. */
function readEdns(bytes: Buffer, start: number): Edns | undefined | 'malformed' {
  const count = bytes.readUInt16BE(10)
  if (count > ADDITIONALS_MAX) return 'malformed'
  let edns: Edns | undefined
  let at = start
  for (let record = 0; record < count; record++) {
    const nameEnd = endOfName(bytes, at, true)
    if (nameEnd === undefined || nameEnd + 10 > bytes.length) return 'malformed'
    const end = nameEnd + 10 + bytes.readUInt16BE(nameEnd + 8)
    if (end > bytes.length) return 'malformed'
    if (bytes.readUInt16BE(nameEnd) === TYPES.OPT) {
      if (edns !== undefined || bytes[at] !== 0) return 'malformed'
      edns = { size: bytes.readUInt16BE(nameEnd + 2), version: bytes[nameEnd + 5]! }
    }
    at = end
  }
  return edns
}
