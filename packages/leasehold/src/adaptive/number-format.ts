/** Numbers for sentences. */

/** `850 ms`, `41 s`, `3.1 min`, `2.5 h`, `4 days`. */
export function formatTime(ms: number): string {
  const { unit, size } = UNITS.find(({ from }) => ms >= from) ?? { unit: 'ms', size: 1 }
  return `${formatNumber(ms / size)} ${unit}`
}

/** A unit is used from twice its size: 90 s says more than 1.5 min. */
const UNITS = [
  { unit: 'days', size: 86_400_000, from: 2 * 86_400_000 },
  { unit: 'h', size: 3_600_000, from: 2 * 3_600_000 },
  { unit: 'min', size: 60_000, from: 2 * 60_000 },
  { unit: 's', size: 1000, from: 995 },
]

/** Two significant digits, and no more than people need: `0.043`, `3.1`, `41`, `1,214`. */
export function formatNumber(value: number): string {
  if (value >= 99.5) return Math.round(value).toLocaleString('en')
  return String(Number(value.toPrecision(2)))
}

/** How much more, as a fraction: `12 % more`, `2.4 times as much`. */
export function formatMore(part: number): string {
  if (part >= 1) return `${formatNumber(1 + part)} times as much`
  return `${Math.round(part * 100)} % more`
}
