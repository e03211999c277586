const UNITS = [
  { unit: 'd', size: 86_400_000 },
  { unit: 'h', size: 3_600_000 },
  { unit: 'min', size: 60_000 },
  { unit: 's', size: 1000 },
] as const

/** Formats a duration for people: `850 ms`, `4.2 s`, `41 s`, `3 min`, `2.5 h`, `4 d`. */
export function formatSpan(ms: number): string {
  if (ms === Infinity) return 'ever'
  const span = Math.max(0, ms)
  // A unit is used from twice its size: 90 s is clearer than 1.5 min.
  const found = UNITS.find(({ size }, at) => span >= (at === UNITS.length - 1 ? size : 2 * size))
  if (found === undefined) return `${Math.round(span)} ms`
  const value = span / found.size
  return `${value < 9.95 ? Number(value.toFixed(1)) : Math.round(value)} ${found.unit}`
}

/** Formats a countdown, in seconds at least. */
export function countdown(ms: number): string {
  if (ms === Infinity) return 'never ends'
  return ms < 10_000
    ? `${(Math.max(0, ms) / 1000).toFixed(1)} s`
    : formatSpan(Math.round(ms / 1000) * 1000)
}

export function count(value: number): string {
  return Math.round(value).toLocaleString('en')
}

/** Formats a number in a plot with its significant digits. */
export function formatNumber(value: number): string {
  if (value >= 1000) return count(value)
  if (value >= 100) return value.toFixed(0)
  return String(Number(value.toFixed(value >= 10 ? 1 : 2)))
}

export function bytes(value: number): string {
  return value >= 1 << 30
    ? `${(value / 2 ** 30).toFixed(1)} GiB`
    : `${Math.round(value / 2 ** 20)} MiB`
}

const CLOCK = new Intl.DateTimeFormat(undefined, {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  hourCycle: 'h23',
})
const DAY = new Intl.DateTimeFormat(undefined, {
  dateStyle: 'medium',
  timeStyle: 'medium',
})

export function timeOfDay(at: number): string {
  return CLOCK.format(at)
}

export function fullTime(at: number): string {
  return DAY.format(at)
}

/** A count with its noun: `1 key`, `2 keys`. */
export function plural(amount: number, word: string): string {
  return `${count(amount)} ${word}${amount === 1 ? '' : 's'}`
}
