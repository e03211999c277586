import { LeaseholdError } from '../../port/index.ts'
import { faultOf as storeFaultOf } from '../../stores/redis/faults.ts'

/** As for the store in Redis. What refers to a lost stream is unknown: followers find out. */
export function faultOf(error: unknown): LeaseholdError {
  const { message } = error as Error
  if (!/READONLY/.test(message)) return storeFaultOf(error)
  const meaning = 'this Redis is a read-only replica: connect to the master'
  return new LeaseholdError('unknown-outcome', `${meaning} (${message})`, { cause: error })
}
