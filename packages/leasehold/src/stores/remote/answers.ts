import {
  type Busy,
  type Capped,
  type Changed,
  type Claim,
  type Claimed,
  type End,
  ERRORS,
  type ErrorCode,
  type Granted,
  type Guarantees,
  type KeyEntry,
  type Lease,
  LeaseholdError,
  type Notice,
  type Reading,
  type Renewed,
} from '../../port/index.ts'
import { type AnswerMessage, DONE, endless, REFUSED, type Welcome } from './protocol.ts'

/**
 * Answers as messages: the server writes them with `write…` and a client reads them with `read…`.
 *
 * The most common answers are written field by field: a claim that holds at once, a change, a
 * renewal of all leases. The others are the port's own objects.
 */
export function writeClaimed(id: number, answer: Claimed | Busy): string {
  if (answer.outcome === 'claimed' && answer.holds && answer.ahead.length === 0) {
    return `[${id},${DONE},${answer.revision},${answer.token}]`
  }
  return writeAnswer(id, answer)
}

const NOTHING_AHEAD: Claimed['ahead'] = []

export function readClaimed(message: AnswerMessage): Claimed | Busy {
  const first = message[2]
  if (typeof first === 'number') {
    const token = message[3] as number
    return { outcome: 'claimed', revision: first, token, holds: true, ahead: NOTHING_AHEAD }
  }
  return withAhead(first as Claimed | Busy)
}

export function writeChanged(id: number, answer: Changed): string {
  return `[${id},${DONE},${answer.revision}]`
}

export function readChanged(message: AnswerMessage): Changed {
  return { revision: message[2] as number }
}

export function writeRenewed(id: number, answer: Renewed): string {
  if (answer.lost.length === 0 && answer.capped.length === 0) return `[${id},${DONE}]`
  return writeAnswer(id, answer)
}

export function readRenewed(message: AnswerMessage): Renewed {
  const answer = message[2] as Renewed | undefined
  if (answer === undefined) return { lost: [], capped: [] }
  for (const capped of answer.capped) mend(capped)
  return answer
}

/** Any other answer, unchanged. */
export function writeAnswer(id: number, answer: object): string {
  return `[${id},${DONE},${JSON.stringify(answer)}]`
}

export function readGranted(message: AnswerMessage): Granted | Busy {
  const answer = message[2] as Granted | Busy
  if (answer.outcome === 'granted' && typeof answer.lease !== 'string') {
    throw new TypeError('a lease was granted without an id')
  }
  return withAhead(answer)
}

export function readObject<Answer>(message: AnswerMessage): Answer {
  return message[2] as Answer
}

export function readReading(message: AnswerMessage): Reading {
  const reading = message[2] as Partial<{
    claims: Claim[]
    keys: KeyEntry[]
    lease: Lease
    leases: Lease[]
  }>
  reading.claims?.forEach(mend)
  if (reading.keys) for (const { claims } of reading.keys) claims.forEach(mend)
  if (reading.lease) mend(reading.lease)
  reading.leases?.forEach(mend)
  return reading as unknown as Reading
}

export function writeError(id: number, error: LeaseholdError): string {
  const { code, message, reason, by, why } = error
  const end = reason === undefined ? undefined : { reason, by, why }
  return JSON.stringify(end ? [id, REFUSED, code, message, end] : [id, REFUSED, code, message])
}

export function readError(message: AnswerMessage): LeaseholdError {
  const [, , code, text, end] = message as readonly [number, number, ErrorCode, string, End?]
  return errorFrom(code, text, end)
}

/** An unknown code is from a newer server: it does not tell us the outcome. */
export function errorFrom(code: string, text: string, end?: End): LeaseholdError {
  if (Object.hasOwn(ERRORS, code)) return new LeaseholdError(code as ErrorCode, text, end)
  return new LeaseholdError('unknown-outcome', `the server answered ${code}: ${text}`)
}

export function writeNotice(watch: number, notice: Notice): string {
  if (notice.type !== 'interrupted') return `["notice",${watch},${JSON.stringify(notice)}]`
  const { code, message } = notice.error
  return JSON.stringify(['notice', watch, { type: 'interrupted', error: { code, message } }])
}

export function readNotice(notice: Notice): Notice {
  if (notice.type === 'capped') mend(notice as unknown as Capped)
  if (notice.type !== 'interrupted') return notice
  const { code, message } = notice.error
  return { type: 'interrupted', error: errorFrom(code, message) }
}

/** The store is reached over a network, whatever it is on the server. */
export function readGuarantees({ guarantees }: Welcome, where: string): Guarantees {
  const { ttl, notes } = guarantees
  return {
    ...guarantees,
    inProcess: false,
    ties: true,
    ttl: { ...ttl, max: endless(ttl.max) },
    notes: [...notes, `It is reached over the network, at ${where}.`],
  }
}

/** Restores infinite times. */
const TIMES = ['until', 'endOfLife', 'ttl', 'remaining'] as const

function mend(it: Claim | Lease | Capped): void {
  const fields = it as unknown as Record<string, unknown>
  for (const name of TIMES) if (fields[name] === null) fields[name] = Infinity
}

function withAhead<Answer extends { readonly ahead: readonly { readonly first: Claim }[] }>(
  answer: Answer,
): Answer {
  for (const { first } of answer.ahead) mend(first)
  return answer
}
