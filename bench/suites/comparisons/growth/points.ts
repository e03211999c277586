import { type Candidate, compare, type Peer } from '../../../measure/compare.js'
import { type Goal, type Row, row } from '../../../measure/rows.js'

export interface PointOptions {
  /** The name of the curve. */
  readonly curve: string
  readonly leases: number
  readonly ours: Candidate['run']
  readonly pids?: Candidate['pids']
  readonly peers?: readonly (Peer | undefined)[]
}

/** One point of a curve: the cost of an operation in microseconds, beside this many leases. */
export async function pointOf(options: PointOptions): Promise<Row[]> {
  const { curve, leases, ours, pids, peers = [] } = options
  const rows = await compare({
    name: `${curve}, ${leases.toLocaleString('en')} leases`,
    unit: 'µs',
    better: 'less',
    ours: { name: curve, run: ours, pids },
    peers,
  })
  return rows.map((it) => ({ ...it, point: { curve, leases } }))
}

/**
 * For each curve, the cost beside the most leases divided by the cost beside the fewest. Uses the
 * measurements in turns if there are any, otherwise those one after the other.
 */
export function growthOf(rows: readonly Row[], goals: Readonly<Record<string, Goal>> = {}): Row[] {
  const curves = [...new Set(rows.map(({ point }) => point!.curve))]
  return curves.map((curve) => {
    const points = rows.filter(({ point }) => point!.curve === curve)
    const sorted = points.sort((a, b) => a.point!.leases - b.point!.leases)
    const [least, most] = [sorted[0]!, sorted.at(-1)!]
    const sizes = [most, least].map(({ point }) => point!.leases.toLocaleString('en'))
    const goal = goals[curve]
    const isCompared = most.peerName?.startsWith(curve) && most.ratio !== undefined
    const grown = isCompared ? 1 / most.ratio! : most.ours / least.ours
    const figure = row(`${curve}: cost at ${sizes[0]} against ${sizes[1]}`, 'x', [grown], goal)
    return { ...figure, better: 'less' as const }
  })
}
