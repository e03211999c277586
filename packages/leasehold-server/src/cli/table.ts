import { systemClock, type Time } from 'leasehold/port'

/** Prints for programs, or for people. Whoever reads only the beginning (`| head`) ends it. */
export function print(isJson: boolean | undefined, value: unknown, text: () => string): void {
  process.stdout.write(isJson ? `${JSON.stringify(value, undefined, 2)}\n` : `${text()}\n`)
}

/** Rows under their headings. What comes from others cannot move the cursor or colour the screen. */
export function table(headings: readonly string[], rows: readonly (readonly unknown[])[]): string {
  const cells = [headings, ...rows.map((row) => row.map(plain))]
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

export function plain(value: unknown): string {
  if (value === undefined || value === '') return '-'
  return String(value).replaceAll(/\p{Cc}+/gu, ' ')
}

/** How long ago, or how long from now: `3s`, `4m12s`, `2h05m`, `3d04h`. */
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

/** Times are the store's, which may differ from this machine's by as much as their clocks do. */
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
