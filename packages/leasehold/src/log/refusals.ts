import { LeaseholdError } from '../port/index.ts'

/** What every log checks of an entry before it is sent. */
export function checkEntry(entry: Uint8Array, entryBytes: number): void {
  if (entry.length === 0) {
    throw new LeaseholdError('invalid-argument', 'the entry is empty: it needs at least one byte')
  }
  if (entry.length > entryBytes) {
    throw new LeaseholdError(
      'limit-exceeded',
      `the entry has ${entry.length} bytes, and this log takes at most ${entryBytes}: split it`,
    )
  }
}

export function closedError(): LeaseholdError {
  return new LeaseholdError('closed', 'the log is closed: open it again')
}
