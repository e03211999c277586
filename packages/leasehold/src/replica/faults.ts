import type { Position } from '../log/index.ts'
import { isLeaseholdError, LeaseholdError } from '../port/index.ts'

/** Whether the log refused a call for a reason that a retry does not change. */
export function isFinal(error: unknown): error is LeaseholdError {
  return isLeaseholdError(error) && error.outcome === 'refused' && error.code !== 'timeout'
}

/** The message of the cause in parentheses, for the end of a message; empty if there is none. */
export function causeSuffix(cause: unknown): string {
  return cause instanceof Error ? ` (${cause.message})` : ''
}

export function checkFormat(what: string, format: number, known: number): void {
  if (format === known) return
  throw new LeaseholdError(
    'unsupported',
    `${what} of the log has format ${format}, but this process reads format ${known}. A newer version wrote it. Update this process`,
  )
}

export function checkSemantics(semantics: number, known: number): void {
  if (semantics <= known) return
  throw new LeaseholdError(
    'unsupported',
    `the log uses version ${semantics} of the lease rules, but this process knows only versions up to ${known}: update this process`,
  )
}

export function foreignLog(position: Position, bytes: Uint8Array): LeaseholdError {
  const begin = Buffer.from(bytes.subarray(0, 16)).toString('hex')
  return new LeaseholdError(
    'invalid-argument',
    `the log is used by something else: Leasehold did not write its first entry, at position ${position}, which begins with ${begin}. Give this store its own name or prefix`,
  )
}

export function damagedEntry(position: Position, cause: unknown): LeaseholdError {
  return new LeaseholdError(
    'storage-damaged',
    `the entry at position ${position} of the log cannot be read: ${(cause as Error).message}. Restore the log from a backup and open one store with tokensAbove`,
    { cause },
  )
}

export function damagedSnapshot(position: Position, cause: unknown): LeaseholdError {
  return new LeaseholdError(
    'storage-damaged',
    `the snapshot of position ${position} cannot be read: ${(cause as Error).message}. Let a running replica save a new one, or restore the log from a backup and open one store with tokensAbove`,
    { cause },
  )
}

export function incompleteLog(position: Position): LeaseholdError {
  return new LeaseholdError(
    'storage-damaged',
    `entries after position ${position} were trimmed, but no snapshot contains them. Restore the log and its snapshot from the same backup and open one store with tokensAbove`,
  )
}

/** Two replicas read the same log and have different states. */
export interface Disagreement {
  readonly position: Position
  readonly member: string
  readonly own: number
  readonly theirs: number
}

export function outvoted(disagreement: Disagreement, agree: number, differ: number) {
  const { position, member, own, theirs } = disagreement
  return new LeaseholdError(
    'storage-damaged',
    `this replica stopped because its state differs from that of the others: at position ${position} its checksum is ${own}, and that of member ${member} is ${theirs} (${agree} agree with it, itself included, and ${differ} do not). Open the store again: it then reads the state from the log. If this happens again, the processes run different versions, or their memory is faulty`,
  )
}

export function answerMissed(): LeaseholdError {
  return new LeaseholdError(
    'unknown-outcome',
    'the call was carried out, but this replica missed the answer: read, or repeat it with its request id',
  )
}

export function memberForgotten(): LeaseholdError {
  return new LeaseholdError(
    'unknown-outcome',
    'this replica was disconnected until the others removed it and trimmed the log. The call may have been carried out: read, or repeat it with its request id',
  )
}

export const noAnswer = () => new Error('no answer')

export function unreachable(timeout: number, cause: unknown): LeaseholdError {
  return new LeaseholdError(
    'timeout',
    `the log could not be read for ${timeout} ms${causeSuffix(cause)}. The store was not opened: check the engine and try again`,
    { cause },
  )
}

export function tooLarge(bytes: number, room: number): LeaseholdError {
  return new LeaseholdError(
    'limit-exceeded',
    `the request has ${bytes} bytes, but an entry of this log has room for ${room}: use smaller or fewer values`,
  )
}

/** For a call that was sent before its replica stopped. */
export function outcomeUnknown(error: LeaseholdError): LeaseholdError {
  const message = `${error.message}. The call may have been carried out, or may still be`
  return new LeaseholdError('unknown-outcome', message, { cause: error })
}

/** For a read that waited for its own entry. It changes nothing, so its outcome is known. */
export function readFailed(error: unknown): unknown {
  const isLate = isLeaseholdError(error, 'unknown-outcome') || isLeaseholdError(error, 'timeout')
  if (!isLate) return error
  const message = `the log did not accept the entry of a read in time${causeSuffix(error.cause)}: nothing was read. Check the engine and try again`
  return new LeaseholdError('timeout', message, { cause: error.cause })
}
