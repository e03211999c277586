import { LeaseholdError } from '../../port/index.ts'

/** Refuses a file that differs from what was written. */
export function damaged(file: string, offset: number, what: string): LeaseholdError {
  return new LeaseholdError(
    'storage-damaged',
    `${file} is damaged at byte ${offset}: ${what}. Nothing was changed. ${REMEDY}`,
  )
}

export function missing(file: string, why: string): LeaseholdError {
  return new LeaseholdError(
    'storage-damaged',
    `${file} is missing: ${why}. Nothing was changed. ${REMEDY}`,
  )
}

/** Refuses contents whose checksums are right, but which no store can have written. */
export function contradictory(file: string, offset: number, cause: unknown): LeaseholdError {
  const what = cause instanceof Error ? cause.message : String(cause)
  return new LeaseholdError(
    'storage-damaged',
    `${file} is invalid before byte ${offset}, although its checksums are right: ${what}. Nothing was changed. ${REMEDY}`,
    { cause },
  )
}

const REMEDY =
  'Restore the whole folder from a backup with `leasehold restore`, or open a copy of the backup ' +
  'with the option tokensAbove: changes after the backup are lost, but no token is given twice. Or ' +
  'move the folder away and start with an empty store by `leasehold restore --empty` or ' +
  'tokensAbove: then every lease and every access token is lost.'
