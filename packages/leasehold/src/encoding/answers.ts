import type { Answer } from '../kernel/index.ts'
import { type Ahead, type Claim, type End, ERRORS, type ErrorCode } from '../port/index.ts'
import type { ByteReader, ByteWriter } from './bytes.ts'

/**
 * Answers and ends as bytes. The numbers below are in files: never change the meaning of one, only
 * add new ones.
 */
const GRANTED = 1
const CLAIMED = 2
const BUSY = 3
const CHANGED = 4
const REVOKED = 5
const REFUSED = 6

const REASONS = ['released', 'expired', 'revoked', 'broken'] as const
const HAS_BY = 0x10
const HAS_WHY = 0x20

export function putAnswer(bytes: ByteWriter, answer: Answer): void {
  if (!('outcome' in answer)) {
    if ('leases' in answer) {
      bytes.byte(REVOKED)
      bytes.integer(answer.revision)
      bytes.integer(answer.leases)
      bytes.integer(answer.claims)
      bytes.byte(answer.more ? 1 : 0)
    } else {
      bytes.byte(CHANGED)
      bytes.integer(answer.revision)
    }
    return
  }
  switch (answer.outcome) {
    case 'granted':
      bytes.byte(GRANTED)
      bytes.string(answer.lease)
      bytes.integer(answer.revision)
      bytes.integer(answer.token)
      bytes.byte(answer.holds ? 1 : 0)
      putAhead(bytes, answer.ahead)
      break
    case 'claimed':
      bytes.byte(CLAIMED)
      bytes.integer(answer.revision)
      bytes.integer(answer.token)
      bytes.byte(answer.holds ? 1 : 0)
      putAhead(bytes, answer.ahead)
      break
    case 'busy':
      bytes.byte(BUSY)
      bytes.integer(answer.revision)
      putAhead(bytes, answer.ahead)
      break
    case 'refused':
      bytes.byte(REFUSED)
      bytes.string(answer.refusal.code)
      bytes.string(answer.refusal.message)
      bytes.byte(answer.refusal.end === undefined ? 0 : 1)
      if (answer.refusal.end !== undefined) putEnd(bytes, answer.refusal.end)
      break
  }
}

export function takeAnswer(bytes: ByteReader): Answer {
  const form = bytes.byte()
  switch (form) {
    case GRANTED: {
      const lease = bytes.string()
      return { outcome: 'granted', lease, ...takeClaimed(bytes) }
    }
    case CLAIMED:
      return { outcome: 'claimed', ...takeClaimed(bytes) }
    case BUSY: {
      const revision = bytes.integer()
      return { outcome: 'busy', revision, ahead: takeAhead(bytes) }
    }
    case CHANGED:
      return { revision: bytes.integer() }
    case REVOKED: {
      const revision = bytes.integer()
      const leases = bytes.integer()
      const claims = bytes.integer()
      return { revision, leases, claims, more: bytes.byte() === 1 }
    }
    case REFUSED:
      return { outcome: 'refused', refusal: takeRefusal(bytes) }
    default:
      throw new RangeError(`an answer has the unknown form ${form}`)
  }
}

export function putEnd(bytes: ByteWriter, end: End): void {
  const reason = REASONS.indexOf(end.reason)
  bytes.byte(reason | (end.by === undefined ? 0 : HAS_BY) | (end.why === undefined ? 0 : HAS_WHY))
  if (end.by !== undefined) bytes.string(end.by)
  if (end.why !== undefined) bytes.string(end.why)
}

/** `form` is the first byte of the end, if it was read already. */
export function takeEnd(bytes: ByteReader, form = bytes.byte()): End {
  const reason = REASONS[form & 0x0f]
  if (reason === undefined) throw new RangeError(`an end has the unknown form ${form}`)
  const end: { reason: End['reason']; by?: string; why?: string } = { reason }
  if (form & HAS_BY) end.by = bytes.string()
  if (form & HAS_WHY) end.why = bytes.string()
  return end
}

function takeClaimed(bytes: ByteReader) {
  const revision = bytes.integer()
  const token = bytes.integer()
  const holds = bytes.byte() === 1
  return { revision, token, holds, ahead: takeAhead(bytes) }
}

function takeRefusal(bytes: ByteReader) {
  const code = bytes.string()
  if (!(code in ERRORS)) throw new RangeError(`a refusal has the unknown code ${code}`)
  const message = bytes.string()
  if (bytes.byte() === 0) return { code: code as ErrorCode, message }
  return { code: code as ErrorCode, message, end: takeEnd(bytes) }
}

function putAhead(bytes: ByteWriter, ahead: readonly Ahead[]): void {
  bytes.integer(ahead.length)
  for (const { key, count, first } of ahead) {
    bytes.string(key)
    bytes.integer(count)
    bytes.string(first.key)
    bytes.integer(first.token)
    bytes.string(first.lease)
    bytes.string(first.holder)
    bytes.byte(first.mode === 'shared' ? 1 : 0)
    bytes.integer(first.limit ?? 0)
    bytes.optionalString(first.value)
    bytes.number(first.claimedAt)
    bytes.byte(first.heldSince === undefined ? 0 : 1)
    if (first.heldSince !== undefined) bytes.number(first.heldSince)
    bytes.number(first.until)
  }
}

function takeAhead(bytes: ByteReader): Ahead[] {
  const ahead: Ahead[] = []
  for (let count = bytes.integer(); count > 0; count--) {
    const key = bytes.string()
    ahead.push({ key, count: bytes.integer(), first: takeClaim(bytes) })
  }
  return ahead
}

function takeClaim(bytes: ByteReader): Claim {
  const key = bytes.string()
  const token = bytes.integer()
  const lease = bytes.string()
  const holder = bytes.string()
  const mode = bytes.byte() === 1 ? 'shared' : 'exclusive'
  const limit = bytes.integer()
  const value = bytes.optionalString()
  const claimedAt = bytes.number()
  const heldSince = bytes.byte() === 1 ? bytes.number() : undefined
  const until = bytes.number()
  return {
    key,
    token,
    lease,
    holder,
    mode,
    ...(limit === 0 ? undefined : { limit }),
    ...(value === undefined ? undefined : { value }),
    claimedAt,
    ...(heldSince === undefined ? undefined : { heldSince }),
    until,
  }
}
