/**
 * One figure, a line of the table and of the JSON: what we do, and where there is something to be
 * compared with in the same run, what that does.
 */
export interface Row {
  /** Written by the command that runs the suite. */
  readonly suite?: string
  readonly name: string
  /** The median of the rounds. */
  readonly ours: number
  readonly peer?: number
  /** Who is compared with, or which limit: see `limit`. */
  readonly peerName?: string
  /**
   * How many times better we are: 2 is twice as fast, whether the unit is `pairs/s` or `ms`. The
   * median of the rounds, each of which compares what was measured one after the other. There is none
   * where one of them measured nothing at all, such as no commands while waiting.
   */
  readonly ratio?: number
  /** The smallest and the largest of the rounds: of the ratio where there is one, else of ours. */
  readonly spread?: readonly [number, number]
  readonly unit: string
  readonly better: 'more' | 'less'
  /** What was asked of the ratio where there is one, else of ours: at least, or where less is better at most. */
  readonly goal?: number
  /** Processor time, microseconds for one of what is counted. */
  readonly cpu?: { readonly ours: Cpu; readonly peer?: Cpu | undefined }
  /** The peer is a physical limit: the ratio is the share of it that we reach. */
  readonly limit?: true
  /** A point of a curve: which, and how many leases there were. */
  readonly point?: { readonly curve: string; readonly leases: number }
}

export interface Cpu {
  readonly client: number
  /** Not there where all is done in the client's process. */
  readonly server?: number | undefined
}

export interface Goal {
  readonly value: number
  readonly better: 'more' | 'less'
}

export const atLeast = (value: number): Goal => ({ value, better: 'more' })
export const atMost = (value: number): Goal => ({ value, better: 'less' })

/** A figure of ours alone. More is better, unless the goal says otherwise. */
export function row(name: string, unit: string, rounds: readonly number[], goal?: Goal): Row {
  return {
    name,
    ours: median(rounds),
    unit,
    better: goal?.better ?? (unit.endsWith('/s') || unit === 'x' ? 'more' : 'less'),
    ...(rounds.length > 1 && { spread: extremes(rounds) }),
    ...(goal && { goal: goal.value }),
  }
}

export interface Comparison {
  readonly unit: string
  readonly better: 'more' | 'less'
  readonly peerName: string
  /** The least ratio that was asked for. */
  readonly goal?: number | undefined
  readonly cpu?: Row['cpu'] | undefined
  readonly limit?: true | undefined
}

/** A figure of ours beside a peer's; the rounds of both were measured in turns. */
export function versus(
  name: string,
  ours: readonly number[],
  peer: readonly number[],
  { unit, better, peerName, goal, cpu, limit }: Comparison,
): Row {
  const ratios = ours.map((value, round) =>
    better === 'more' ? value / peer[round]! : peer[round]! / value,
  )
  const isRatio = ratios.every((ratio) => Number.isFinite(ratio) && ratio > 0)
  return {
    name,
    ours: median(ours),
    peer: median(peer),
    peerName,
    ...(isRatio && { ratio: median(ratios) }),
    spread: extremes(isRatio ? ratios : ours),
    unit,
    better,
    ...(goal !== undefined && { goal }),
    ...(cpu && { cpu }),
    ...(limit && { limit }),
  }
}

export function met({ ours, ratio, peer, better, goal }: Row): boolean {
  if (goal === undefined) return true
  if (ratio !== undefined) return ratio >= goal
  // Nothing against something: infinitely better, or infinitely worse.
  if (peer !== undefined) return better === 'more' ? ours > peer : ours < peer
  return better === 'more' ? ours >= goal : ours <= goal
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5)
}

export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!
}

function extremes(values: readonly number[]): [number, number] {
  return [Math.min(...values), Math.max(...values)]
}

/** Runs a function several times and gives what it measured each time. */
export async function rounds(
  count: number,
  measure: () => number | Promise<number>,
): Promise<number[]> {
  const values: number[] = []
  for (let round = 0; round < roundsWanted(count); round++) values.push(await measure())
  return values
}

/** Lets several take turns, after one round that is not counted, and gives what each measured. */
export async function roundsOf(
  count: number,
  measures: readonly (() => number | Promise<number>)[],
): Promise<number[][]> {
  const values = measures.map((): number[] => [])
  for (let round = 0; round <= roundsWanted(count); round++) {
    for (const [at, measure] of measures.entries()) {
      const value = await measure()
      if (round > 0) values[at]!.push(value)
    }
  }
  return values
}

/** So many rounds, unless the command was asked for another number. */
export function roundsWanted(count: number): number {
  return Number(process.env['BENCH_ROUNDS'] ?? count)
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

export function format(value: number): string {
  if (value >= 1000) return Math.round(value).toLocaleString('en')
  if (value === 0) return '0'
  return value >= 10 ? value.toFixed(1) : value.toFixed(3)
}
