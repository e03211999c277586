import type { Row } from '../measure/rows.js'
import { BLUE, FAINT, ORANGE, type Point, type Style, Svg, widthOf } from './svg.js'
import { isOurselves } from './tables.js'

const PLOT = { left: 60, top: 70, width: 460, height: 260 }
const MARGIN = 16
const COLOURS = [BLUE, ORANGE, '#4a9a4a', '#9a5ab0', '#b08a2e', '#c04a6a']

interface Curve {
  readonly name: string
  /** The number of leases, and the figure. */
  readonly points: readonly Point[]
}

/**
 * Draws how a figure grows with the number of leases. Both scales are logarithmic: a level line means
 * that the cost does not depend on the number. Returns `undefined` if no row is a point of a curve.
 */
export function growthCurves(suite: string, rows: readonly Row[]): string | undefined {
  const all = curvesOf(rows)
  if (all.length === 0) return undefined
  const { left, top, width, height } = PLOT
  const unit = rows.find(({ point }) => point)!.unit
  const title = `${suite}: ${unit} for one, by the number of leases that there are`
  const legend = 40 + Math.max(...all.map(({ name }) => widthOf(name))) + MARGIN
  const svg = new Svg(left + width + legend, top + height + 30, title)
  svg.text([MARGIN, 24], title, { 'font-size': 14, 'font-weight': 'bold' })
  svg.text([MARGIN, 42], 'Both scales are logarithmic: what stays level does not grow.')
  const place = axes(svg, all)
  for (const [at, { name, points }] of all.entries()) {
    const style = styleOf(at)
    svg.path(points.map(place), style)
    for (const point of points) svg.circle(place(point), 3, { fill: style['stroke']! })
    const y = top + 10 + at * 20
    svg.line([left + width + 14, y], [left + width + 34, y], style)
    svg.text([left + width + 40, y + 4], name)
  }
  return svg.toText()
}

/** Draws a line for each decade; returns the function that places a point. */
function axes(svg: Svg, all: readonly Curve[]): (point: Point) => Point {
  const { left, top, width, height } = PLOT
  const xs = scale(all.flatMap(({ points }) => points.map(([x]) => x)))
  const ys = scale(all.flatMap(({ points }) => points.map(([, y]) => y)))
  const place = ([x, y]: Point): Point => [
    left + xs.share(x) * width,
    top + (1 - ys.share(y)) * height,
  ]
  for (const decade of xs.decades) {
    const [x] = place([decade, 1])
    svg.line([x, top], [x, top + height], { stroke: FAINT })
    svg.text([x, top + height + 16], decade.toLocaleString('en'), { 'text-anchor': 'middle' })
  }
  for (const decade of ys.decades) {
    const [, y] = place([1, decade])
    svg.line([left, y], [left + width, y], { stroke: FAINT })
    svg.text([left - 6, y + 4], `${decade}`, { 'text-anchor': 'end' })
  }
  return place
}

/** Lines are dashed once the colours repeat. */
function styleOf(at: number): Style {
  const dashed = at >= COLOURS.length ? { 'stroke-dasharray': '5 3' } : {}
  return { stroke: COLOURS[at % COLOURS.length]!, 'stroke-width': 2, ...dashed }
}

/** Our curves, and those of the peers. */
function curvesOf(rows: readonly Row[]): Curve[] {
  const found = new Map<string, Point[]>()
  const add = (name: string, point: Point) => {
    const points = found.get(name) ?? []
    // Each peer has its own row, so our figure appears once per peer.
    if (!points.some(([x]) => x === point[0])) points.push(point)
    found.set(name, points)
  }
  for (const row of rows) {
    const { point, ours, peer, peerName } = row
    if (!point) continue
    add(point.curve, [point.leases, ours])
    if (peer !== undefined && !isOurselves(row)) add(peerName!, [point.leases, peer])
  }
  return [...found].map(([name, points]) => ({ name, points: points.sort(([a], [b]) => a - b) }))
}

/** From the decade below the smallest to the decade above the largest. */
function scale(values: readonly number[]): { decades: number[]; share(value: number): number } {
  const from = Math.floor(Math.log10(Math.min(...values)))
  const to = Math.max(from + 1, Math.ceil(Math.log10(Math.max(...values))))
  const decades = Array.from({ length: to - from + 1 }, (_, at) => 10 ** (from + at))
  return { decades, share: (value) => (Math.log10(value) - from) / (to - from) }
}
