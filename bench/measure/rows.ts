/**
 * One figure: a row of the table and of the JSON. It has our value and, if there is a peer, the value
 * that the peer reached in the same run.
 */
export interface Row {
  /** Set by the command that runs the suite. */
  readonly suite?: string
  readonly name: string
  /** The median of the rounds. */
  readonly ours: number
  readonly peer?: number
  /** The name of the peer or of the limit: see `limit`. */
  readonly peerName?: string
  /**
   * How many times better we are: 2 is twice as fast, whether the unit is `pairs/s` or `ms`. It is the
   * median of the ratios of the rounds. It is missing if one of the two values is zero, such as no
   * commands while waiting.
   */
  readonly ratio?: number
  /** The smallest and the largest round: of the ratio if there is one, else of our value. */
  readonly spread?: readonly [number, number]
  readonly unit: string
  readonly better: 'more' | 'less'
  /**
   * The goal for the ratio if there is one, else for our value. It is a minimum, or a maximum if less
   * is better.
   */
  readonly goal?: number
  /** Processor time of one operation, in microseconds. */
  readonly cpu?: { readonly ours: Cpu; readonly peer?: Cpu | undefined }
  /** The peer is a physical limit: the ratio is the share of it that we reach. */
  readonly limit?: true
  /** For a point of a curve: its curve, and the number of leases. */
  readonly point?: { readonly curve: string; readonly leases: number }
}

export interface Cpu {
  readonly client: number
  /** Missing if everything runs in the client's process. */
  readonly server?: number | undefined
}

export interface Goal {
  readonly value: number
  readonly better: 'more' | 'less'
}

export const atLeast = (value: number): Goal => ({ value, better: 'more' })
export const atMost = (value: number): Goal => ({ value, better: 'less' })

/** A row with our figure alone. The goal, or else the unit, says whether more is better. */
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
  /** The lowest acceptable ratio. */
  readonly goal?: number | undefined
  readonly cpu?: Row['cpu'] | undefined
  readonly limit?: true | undefined
}

/** A row that compares our rounds with the peer's rounds, which were measured in turns. */
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
  // One of the two is zero, so one side is infinitely better.
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

/** Runs a function several times and returns its results. */
export async function rounds(
  count: number,
  measure: () => number | Promise<number>,
): Promise<number[]> {
  const values: number[] = []
  for (let round = 0; round < roundsWanted(count); round++) values.push(await measure())
  return values
}

/** Runs several functions in turns, after one uncounted round, and returns the results of each. */
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

/** `count`, unless the user asked for another number of rounds. */
export function roundsWanted(count: number): number {
  return Number(process.env['BENCH_ROUNDS'] ?? count)
}

/** Operations per second of `work`, which does `count` of them. */
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
