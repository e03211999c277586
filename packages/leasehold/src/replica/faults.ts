import type { Position } from '../log/index.ts'
import { isLeaseholdError, LeaseholdError } from '../port/index.ts'

/** Whether a call of the log was refused for a reason that is there the next time, too. */
export function isFinal(error: unknown): error is LeaseholdError {
  return isLeaseholdError(error) && error.outcome === 'refused' && error.code !== 'timeout'
}

/** The cause, to be put behind what has failed. */
export function because(cause: unknown): string {
  return cause instanceof Error ? ` (${cause.message})` : ''
}

export function checkFormat(what: string, format: number, known: number): void {
  if (format === known) return
  throw new LeaseholdError(
    'unsupported',
    `${what} of the log has format ${format}, and this version reads format ${known}: a newer version wrote it. Update this process`,
  )
}

export function checkSemantics(semantics: number, known: number): void {
  if (semantics <= known) return
  throw new LeaseholdError(
    'unsupported',
    `the log follows version ${semantics} of the lease rules, and this process knows them up to version ${known}: update this process`,
  )
}

export function foreignLog(position: Position, bytes: Uint8Array): LeaseholdError {
  const begin = Buffer.from(bytes.subarray(0, 16)).toString('hex')
  return new LeaseholdError(
    'invalid-argument',
    `the log holds something else: its first entry, at position ${position}, begins with ${begin}, which Leasehold did not write. Give this store a name or prefix of its own`,
  )
}

export function damagedEntry(position: Position, cause: unknown): LeaseholdError {
  return new LeaseholdError(
    'storage-damaged',
    `the entry at position ${position} of the log cannot be read: ${(cause as Error).message}. Restore the log from a backup, and open one store with tokensAbove`,
    { cause },
  )
}

export function damagedSnapshot(position: Position, cause: unknown): LeaseholdError {
  return new LeaseholdError(
    'storage-damaged',
    `the snapshot of position ${position} cannot be read: ${(cause as Error).message}. Let a replica that still runs save a new one, or restore the log from a backup and open one store with tokensAbove`,
    { cause },
  )
}

export function incompleteLog(position: Position): LeaseholdError {
  return new LeaseholdError(
    'storage-damaged',
    `entries after position ${position} were trimmed, and there is no snapshot that has their effect. Restore the log and its snapshot from the same backup, and open one store with tokensAbove`,
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
    `this replica has stopped, because its state is not that of the others: at position ${position} its checksum is ${own}, and that of member ${member} is ${theirs} (${agree} agree with it, itself included, and ${differ} do not). Open the store again: it then reads the state from the log. If this comes back, the processes run different versions, or their memory is faulty`,
  )
}

export function unanswered(): LeaseholdError {
  return new LeaseholdError(
    'unknown-outcome',
    'it was carried out, but this replica has missed the answer: read, or repeat it with its request id',
  )
}

export function forgotten(): LeaseholdError {
  return new LeaseholdError(
    'unknown-outcome',
    'this replica was away until the others had removed it and trimmed the log: it may have been carried out. Read, or repeat it with its request id',
  )
}

export function unreachable(timeout: number, cause: unknown): LeaseholdError {
  return new LeaseholdError(
    'timeout',
    `the log could not be read for ${timeout} ms${because(cause)}: the store was not opened. Check the engine, and try again`,
    { cause },
  )
}

export function tooLarge(bytes: number, room: number): LeaseholdError {
  return new LeaseholdError(
    'limit-exceeded',
    `the request has ${bytes} bytes, and an entry of this log has room for ${room}: use smaller values, or fewer`,
  )
}

/** For a call that was sent when its replica came to an end. */
export function mayBeDone(error: LeaseholdError): LeaseholdError {
  const message = `${error.message}. What was asked for may have been carried out, or may be yet`
  return new LeaseholdError('unknown-outcome', message, { cause: error })
}

/** For a read that waited for an entry of its own. It changes nothing, so its outcome is known. */
export function notRead(error: unknown): unknown {
  const isLate = isLeaseholdError(error, 'unknown-outcome') || isLeaseholdError(error, 'timeout')
  if (!isLate) return error
  const message = `the log did not take the entry of a read in time${because(error.cause)}: nothing was read. Check the engine, and try again`
  return new LeaseholdError('timeout', message, { cause: error.cause })
}
