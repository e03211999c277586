/** One figure. A row of the table that is printed, and of the JSON that is written. */
export interface Row {
  readonly name: string
  readonly value: number
  readonly unit: string
  /** The smallest and the largest of the rounds, where there were several. */
  readonly spread?: readonly [number, number]
  /** What was asked of it, and whether more or less is better. */
  readonly goal?: { readonly value: number; readonly better: 'more' | 'less' }
}

export type Goal = Row['goal']

export const atLeast = (value: number): Goal => ({ value, better: 'more' })
export const atMost = (value: number): Goal => ({ value, better: 'less' })

/** The median of several rounds, with the extremes. */
export function row(name: string, unit: string, rounds: readonly number[], goal?: Goal): Row {
  const sorted = [...rounds].sort((a, b) => a - b)
  const value = sorted[Math.floor(sorted.length / 2)]!
  const spread: [number, number] = [sorted[0]!, sorted[sorted.length - 1]!]
  return { name, value, unit, ...(rounds.length > 1 && { spread }), ...(goal && { goal }) }
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!
}

/** Runs a function several times and gives what it measured each time. */
export async function rounds(
  count: number,
  measure: () => number | Promise<number>,
): Promise<number[]> {
  const values: number[] = []
  for (let round = 0; round < count; round++) values.push(await measure())
  return values
}

/** How many times a second `work`, which does `count` things, does them. */
export function perSecond(count: number, work: () => void): number {
  const start = performance.now()
  work()
  return (count / (performance.now() - start)) * 1000
}

export async function perSecondAsync(count: number, work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return (count / (performance.now() - start)) * 1000
}

export function met({ value, goal }: Row): boolean {
  return !goal || (goal.better === 'more' ? value >= goal.value : value <= goal.value)
}

export function format(value: number): string {
  if (value >= 1000) return Math.round(value).toLocaleString('en')
  return value >= 10 ? value.toFixed(1) : value.toFixed(3)
}
