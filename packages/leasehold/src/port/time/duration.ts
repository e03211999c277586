import { show } from '../arguments/show.ts'
import { invalid, LeaseholdError } from '../errors.ts'

/** A number of milliseconds, or a string such as `'250ms'`, `'30s'`, `'1.5h'`, `'infinite'`. */
export type Duration = number | `${number}${Unit}` | 'infinite'

type Unit = 'ms' | 's' | 'm' | 'h' | 'd'

const MILLISECONDS: Record<Unit, number> = { ms: 1, s: 1e3, m: 60e3, h: 3600e3, d: 86400e3 }
const FORM = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/

/** The duration in milliseconds. `name` is the argument's name in the error message. */
export function milliseconds(value: Duration, name: string): number {
  if (typeof value === 'number') {
    if (value >= 0) return value
    throw new LeaseholdError(
      'invalid-argument',
      `${name} is ${value}: it must be at least 0 milliseconds, or a string such as '30s'`,
    )
  }
  if (value === 'infinite') return Infinity
  const parts = typeof value === 'string' ? FORM.exec(value) : null
  if (parts) return Number(parts[1]) * MILLISECONDS[parts[2] as Unit]
  throw new LeaseholdError(
    'invalid-argument',
    `${name} is ${show(value)}: give milliseconds (30000), a number with ms, s, m, h or d ('30s', '1.5h'), or 'infinite'`,
  )
}

/** Checks a duration that must be more than 0 and not infinite. Returns milliseconds. */
export function positive(value: Duration, name: string): number {
  const ms = milliseconds(value, name)
  if (ms > 0 && ms < Infinity) return ms
  throw invalid(`${name} is ${show(value)}: it must be more than 0 and finite, such as '5s'`)
}

/** A duration as a person would write it: `1.5h`, `30s`, `250ms`, `infinite`. */
export function formatDuration(ms: number): string {
  if (ms === Infinity) return 'infinite'
  for (const unit of ['d', 'h', 'm', 's'] as const) {
    const count = ms / MILLISECONDS[unit]
    if (count >= 1 && Number.isInteger(count * 10)) return `${count}${unit}`
  }
  return `${Math.round(ms * 1000) / 1000}ms`
}
