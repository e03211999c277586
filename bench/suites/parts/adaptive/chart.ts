import { percentile } from '../../../measure/rows.js'
import { BLUE, FAINT, INK, ORANGE, type Point, Svg } from '../../../report/svg.js'
import { type Comparison, hasRatio, ratioOfFixed } from './compare.js'
import { FIXED, MAX, MIN } from './cost.js'

const COLUMNS = 2
const PANEL = { width: 400, height: 205 }
const PLOT = { left: 46, top: 46, width: 330, height: 118 }
const COSTS = [0.5, 1, 2, 4]
const TTLS = [
  [5000, '5 s'],
  [15_000, '15 s'],
  [60_000, '1 min'],
  [180_000, '3 min'],
  [600_000, '10 min'],
] as const

/** One panel per workload: the cost of every fixed ttl, and of the adaptive one. */
export function chart(comparisons: readonly Comparison[], single: number): string {
  const shown = comparisons.filter(hasRatio)
  const rows = Math.ceil((shown.length + 1) / COLUMNS)
  const svg = new Svg(
    COLUMNS * PANEL.width,
    rows * PANEL.height,
    'What holds cost with fixed ttls and with the adaptive one',
  )
  shown.forEach((comparison, index) => {
    new Panel(svg, index).draw(comparison, single)
  })
  legend(svg, shown.length)
  return svg.toText()
}

function cornerOf(index: number): Point {
  return [(index % COLUMNS) * PANEL.width, Math.floor(index / COLUMNS) * PANEL.height]
}

class Panel {
  readonly #svg: Svg
  readonly #left: number
  readonly #top: number

  constructor(svg: Svg, index: number) {
    const [x, y] = cornerOf(index)
    this.#svg = svg
    this.#left = x + PLOT.left
    this.#top = y + PLOT.top
  }

  draw(comparison: Comparison, single: number): void {
    const { name, about } = comparison.workload
    this.#svg.text([this.#left, this.#top - 26], name, { 'font-size': 13, 'font-weight': 600 })
    this.#svg.text([this.#left, this.#top - 11], about, { 'font-size': 9.5 })
    this.#axes()
    const singleX = this.#x(FIXED[single]!)
    const bottom = this.#top + PLOT.height
    this.#svg.line([singleX, this.#top], [singleX, bottom], {
      stroke: INK,
      'stroke-dasharray': '4 3',
    })
    this.#fixed(comparison)
    this.#adaptive(comparison)
  }

  #axes(): void {
    const right = this.#left + PLOT.width
    for (const cost of COSTS) {
      const y = this.#y(cost)
      this.#svg.line([this.#left, y], [right, y], { stroke: cost === 1 ? INK : FAINT })
      this.#svg.text([this.#left - 6, y + 4], `${cost}×`, { 'text-anchor': 'end' })
    }
    const bottom = this.#top + PLOT.height
    for (const [ttl, words] of TTLS) {
      const x = this.#x(ttl)
      this.#svg.line([x, bottom], [x, bottom + 4], { stroke: INK })
      this.#svg.text([x, bottom + 16], words, { 'text-anchor': 'middle' })
    }
  }

  #fixed(comparison: Comparison): void {
    const points = FIXED.map((ttl, at) => ({ ttl, cost: ratioOfFixed(comparison, at) }))
    const inside = points.filter(({ cost }) => cost <= COSTS.at(-1)!)
    const path = inside.map(({ ttl, cost }): Point => [this.#x(ttl), this.#y(cost)])
    this.#svg.path(path, { stroke: BLUE, 'stroke-width': 2 })
    const best = points.reduce((best, next) => (next.cost < best.cost ? next : best))
    const place: Point = [this.#x(best.ttl), this.#y(best.cost)]
    this.#svg.circle(place, 4, { stroke: BLUE, 'stroke-width': 2 })
  }

  /** The cross shows the spread: of the cost over the seeds, and of the ttls over all holds. */
  #adaptive({ rounds }: Comparison): void {
    const costs = rounds.map(({ adaptive, best }) => adaptive.cost / best.cost)
    const ttls = rounds.flatMap((round) => round.ttls)
    const at = (share: number): Point => [
      this.#x(percentile(ttls, share)),
      this.#y(percentile(costs, share)),
    ]
    const [x, y] = at(0.5)
    const style = { stroke: ORANGE, 'stroke-width': 2 }
    this.#svg.line([at(0.1)[0], y], [at(0.9)[0], y], style)
    this.#svg.line([x, at(0)[1]], [x, at(1)[1]], style)
    this.#svg.circle([x, y], 4, { fill: ORANGE })
  }

  #x(ttl: number): number {
    return this.#left + (PLOT.width * Math.log(ttl / MIN)) / Math.log(MAX / MIN)
  }

  #y(cost: number): number {
    const [low, high] = [COSTS[0]!, COSTS.at(-1)!]
    const part = Math.log(Math.min(Math.max(cost, low), high) / low) / Math.log(high / low)
    return this.#top + PLOT.height * (1 - part)
  }
}

function legend(svg: Svg, index: number): void {
  const [left, top] = cornerOf(index)
  const x = left + PLOT.left
  let y = top + PLOT.top - 22
  const entry = (draw: (y: number) => void, lines: readonly string[]) => {
    draw(y - 4)
    for (const words of lines) {
      svg.text([x + 40, y], words)
      y += 15
    }
    y += 9
  }
  entry(
    (y) => {
      svg.line([x, y], [x + 28, y], { stroke: BLUE, 'stroke-width': 2 })
      svg.circle([x + 14, y], 4, { stroke: BLUE, 'stroke-width': 2 })
    },
    ['what a fixed ttl costs (to the right: longer), and its best'],
  )
  entry(
    (y) => {
      svg.line([x, y], [x + 28, y], { stroke: ORANGE, 'stroke-width': 2 })
      svg.line([x + 14, y - 9], [x + 14, y + 9], { stroke: ORANGE, 'stroke-width': 2 })
      svg.circle([x + 14, y], 4, { fill: ORANGE })
    },
    [
      'adaptive: median; across: 80 % of the ttls it chose;',
      'upright: cheapest to dearest of the seeds',
    ],
  )
  entry(
    (y) => svg.line([x + 14, y - 9], [x + 14, y + 9], { stroke: INK, 'stroke-dasharray': '4 3' }),
    ['the one fixed ttl that is best for all workloads together'],
  )
  entry(
    (y) => svg.line([x, y], [x + 28, y], { stroke: INK }),
    [
      '1×: the fixed ttl that was best for this very run, as',
      'only hindsight can tell. 2× costs twice as much.',
    ],
  )
}
