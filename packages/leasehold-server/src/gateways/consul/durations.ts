/** The units of Go's durations, in milliseconds. */
const UNITS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
}
const FORM = /^[+-]?((\d+(\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h))+$/
/** A number below this is seconds, otherwise nanoseconds: so Consul reads a lock-delay. */
const SECONDS_BELOW = 1000

/** Milliseconds of a duration as Go writes it, such as `1m30s`; `undefined` if it is none. */
export function goDuration(text: string): number | undefined {
  if (text === '0') return 0
  if (!FORM.test(text)) return undefined
  let ms = 0
  for (const [, digits, unit] of text.matchAll(/([\d.]+)([a-zµ]+)/g)) {
    ms += Number(digits) * UNITS[unit!]!
  }
  return text.startsWith('-') ? -ms : ms
}

/** Milliseconds of a duration in a request body: a string, or a number. */
export function givenDuration(value: unknown): number | undefined {
  if (typeof value === 'string') return goDuration(value)
  if (typeof value !== 'number') return undefined
  return value < SECONDS_BELOW ? value * 1000 : value / 1e6
}

/** Consul writes durations in answers as nanoseconds. */
export function nanoseconds(ms: number): number {
  return Math.round(ms * 1e6)
}

/** A duration as Go writes it: `1m30s`, `500ms`. */
export function goDurationText(ms: number): string {
  if (ms < 1000) return ms === 0 ? '0s' : `${ms}ms`
  const [hours, minutes] = [Math.floor(ms / 3_600_000), Math.floor(ms / 60_000) % 60]
  const seconds = `${(ms % 60_000) / 1000}s`
  if (hours > 0) return `${hours}h${minutes}m${seconds}`
  return minutes > 0 ? `${minutes}m${seconds}` : seconds
}
