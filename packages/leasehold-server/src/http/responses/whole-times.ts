/** The fields with a time of the store's clock, which counts fractions of milliseconds. */
const TIMES: ReadonlySet<string> = new Set([
  ...['at', 'claimedAt', 'createdAt', 'endOfLife', 'endedAt', 'expiresAt', 'grantedAt'],
  ...['heldSince', 'renewedAt', 'since', 'until'],
])
/** Fields with what a user has stored: any JSON, which must not change. */
const OPAQUE: ReadonlySet<string> = new Set(['data', 'value', 'metadata', 'labels'])

/** The answer with all times as integers, which other languages expect of a timestamp. */
export function withWholeTimes(answer: unknown): unknown {
  if (typeof answer !== 'object' || answer === null) return answer
  if (Array.isArray(answer)) return answer.map(withWholeTimes)
  if ('toJSON' in answer) return answer
  const whole: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(answer)) {
    if (OPAQUE.has(name)) whole[name] = value
    else if (TIMES.has(name) && typeof value === 'number') whole[name] = Math.floor(value)
    else whole[name] = withWholeTimes(value)
  }
  return whole
}
