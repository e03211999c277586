import { type ErrorCode, LeaseholdError, show } from '../../../port/index.ts'
import { endOf, unescaped } from './fields.ts'

type Words = (...parts: string[]) => string

/** The refusals of the script: the code, and the message for their values. */
const REFUSALS: Record<string, readonly [ErrorCode, Words]> = {
  'lease-not-found': [
    'lease-not-found',
    (id) =>
      `there is no lease ${show(id)}: it never existed, or it ended long ago. Take a new one.`,
  ],
  'claim-not-found': [
    'claim-not-found',
    (id, token, key, first) =>
      `lease ${id} has no claim with token ${token} on ${show(key)}: it was released or removed (now ${first ? `token ${first} is first` : 'it has no claims'})`,
  ],
  'key-full': [
    'limit-exceeded',
    (key, count) =>
      `key ${show(key)} has ${count} claims, the maximum. Wait until some are released.`,
  ],
  'lease-full': [
    'limit-exceeded',
    (id, count, most) =>
      `lease ${id} has ${count} claims; the maximum is ${most}. Release some, or use another lease.`,
  ],
  'too-many-claims': [
    'limit-exceeded',
    (count, most) =>
      `claims has ${count} keys; the maximum per lease is ${most}. Claim fewer keys, or use several leases.`,
  ],
  'many-children': [
    'limit-exceeded',
    (id, most) => `lease ${id} has ${most} child leases, the maximum. Use another parent.`,
  ],
  'too-deep': [
    'limit-exceeded',
    (id, most) => `lease ${id} is at depth ${most}, the maximum. Use a parent higher up.`,
  ],
  'store-full': [
    'limit-exceeded',
    (most) => `the store has ${most} leases, the maximum. End some leases, or raise the limit.`,
  ],
}

/** The error for a refusal of the script, which consists of its name and its values. */
export function refusalOf([name, ...parts]: readonly string[]): LeaseholdError {
  if (name === 'lease-ended') return leaseEnded(unescaped(parts[0]!), parts[1]!)
  const [code, words] = REFUSALS[name!]!
  return new LeaseholdError(code, words(...parts.map(unescaped)))
}

function leaseEnded(id: string, text: string): LeaseholdError {
  const end = endOf(text)!
  const by = end.by ? ` by ${end.by}` : ''
  const why = end.why ? `, because ${end.why}` : ''
  return LeaseholdError.from({
    code: 'lease-ended',
    message: `lease ${id} has ended: ${end.reason}${by}${why}. Take a new one.`,
    end,
  })
}
