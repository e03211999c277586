import { systemClock, type Time } from 'leasehold/port'
import { withWholeTimes } from '../http/responses/whole-times.ts'

/** Prints JSON for programs, or text for people. */
export function print(isJson: boolean | undefined, value: unknown, text: () => string): void {
  process.stdout.write(`${isJson ? jsonText(value, 2) : text()}\n`)
}

/** JSON with the same whole timestamps as in the HTTP API. */
export function jsonText(value: unknown, indent = 0): string {
  return JSON.stringify(withWholeTimes(value), undefined, indent)
}

/** Formats a table. Control characters in cells are removed, so they cannot affect the terminal. */
export function table(headings: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const cells = [headings, ...rows.map((row) => row.map(printable))]
  const widths = headings.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)))
  return cells
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

export function printable(value: unknown): string {
  if (value === undefined || value === '') return '-'
  return String(value).replaceAll(/\p{Cc}+/gu, ' ')
}

/** A count with its noun: `1 lease`, `2 leases`. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** Formats a duration: `3s`, `4m12s`, `2h05m`, `3d04h`. */
export function span(ms: number): string {
  if (ms === Infinity) return 'never'
  if (ms < 1000) return `${Math.max(0, Math.round(ms))}ms`
  const seconds = Math.floor(ms / 1000)
  const [days, hours, minutes] = [seconds / 86_400, (seconds / 3600) % 24, (seconds / 60) % 60].map(
    Math.floor,
  ) as [number, number, number]
  if (days > 0) return `${days}d${two(hours)}h`
  if (hours > 0) return `${hours}h${two(minutes)}m`
  return minutes > 0 ? `${minutes}m${two(seconds % 60)}s` : `${seconds}s`
}

/** Times come from the store's clock, which may differ from this machine's. */
export function since(time: Time | undefined): string {
  return time === undefined ? '-' : span(systemClock.now() - time)
}

export function until(time: Time | undefined): string {
  return time === undefined ? '-' : span(time - systemClock.now())
}

export function at(time: Time): string {
  return new Date(time).toISOString()
}

function two(value: number): string {
  return String(value).padStart(2, '0')
}
