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
  'Restore the whole folder from a copy of it: what was granted or released after the copy was ' +
  'taken is then forgotten, and tokens given since may be given again. Or move the folder away to ' +
  'start with an empty store: every lease is then forgotten and tokens begin again at 1, so that ' +
  'resources which remember a token must be reset as well.'
