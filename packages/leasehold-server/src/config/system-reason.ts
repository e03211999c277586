import { reasonOfSystem } from 'leasehold/port'

/** The message of an error. One of the operating system names the file first. */
export function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { path } = error as NodeJS.ErrnoException
  const reason = reasonOfSystem(error)
  return path !== undefined && reason !== undefined ? `"${path}": ${reason}` : error.message
}
