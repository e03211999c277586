import { type DecodedPacket, decode } from 'dns-packet'

/** A query that can be answered. */
export interface Query {
  readonly id: number
  /** The flag that the client wants recursion: the answer repeats it. */
  readonly wantsRecursion: boolean
  /** The question as it was sent. */
  readonly question: Buffer
  /** In lower case, without a dot at the end. */
  readonly name: string
  readonly type: string
  readonly edns: { readonly size: number; readonly version: number } | undefined
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
  // A query has no answers, no authorities, and at most a few additional records.
  const isPlain = bytes.readUInt32BE(6) === 0 && bytes.readUInt16BE(10) <= 4
  if (!hasOneQuestion || !isPlain) return malformed
  try {
    const packet = decode(bytes)
    const { name, type, class: kind } = packet.questions![0]!
    const end = questionEnd(bytes)
    if (end === undefined) return malformed
    if (kind !== 'IN' && kind !== 'ANY') return { id, opcode, code: CODES.refused }
    return {
      id,
      wantsRecursion: (bytes[2]! & 1) !== 0,
      question: bytes.subarray(HEADER_BYTES, end),
      name: name === '.' ? '' : name.toLowerCase(),
      type,
      edns: ednsOf(packet),
    }
  } catch {
    return malformed
  }
}

/** The end of the question; `undefined` if its name has a pointer, which can point only to itself. */
function questionEnd(bytes: Buffer): number | undefined {
  let at = HEADER_BYTES
  for (let length = bytes[at]!; length > 0; length = bytes[at]!) {
    if (length > LABEL_MAX) return undefined
    at += length + 1
  }
  return at + 5
}

function ednsOf({ additionals = [] }: DecodedPacket): Query['edns'] {
  const options = additionals.filter((record) => record.type === 'OPT')
  if (options.length > 1) throw new Error('more than one OPT record')
  const [option] = options
  return option && { size: option.udpPayloadSize, version: option.ednsVersion }
}
