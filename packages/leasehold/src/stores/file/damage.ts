import { LeaseholdError } from '../../port/index.ts'

/** The refusal to open what is not what was written. */
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

/** What was read is what was written, but it makes no sense: it is refused all the same. */
export function contradictory(file: string, offset: number, cause: unknown): LeaseholdError {
  const what = cause instanceof Error ? cause.message : String(cause)
  return new LeaseholdError(
    'storage-damaged',
    `${file} cannot be understood before byte ${offset}, though its checksums are right: ${what}. Nothing was changed. ${REMEDY}`,
    { cause },
  )
}

const REMEDY =
  'Restore the whole folder from a backup with `leasehold restore`, or open a copy of it with the ' +
  'option tokensAbove: what changed after the backup is lost, but no token is given twice. Or move ' +
  'the folder away and start with an empty store by `leasehold restore --empty` or tokensAbove: ' +
  'then every lease and every access token is lost.'
