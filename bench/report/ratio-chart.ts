import { format, type Row } from '../measure/rows.js'
import { SUITES } from '../suites/index.js'
import { BLUE, FAINT, GREY, INK, ORANGE, PAPER, type Point, Svg, widthOf } from './svg.js'
import { isOurselves } from './tables.js'

const PLOT_WIDTH = 390
const MARGIN = 16
const INDENT = 14
/** Room for the figure behind the longest bar. */
const RIGHT = 74
const HEAD = 104
const LINE = 20
/** The space above each measurement. */
const GAP = 4
const BAR = 10
/** The scale goes from a tenth of the peer to a hundred times the peer. Longer bars are cut. */
const DECADES = [-1, 2] as const

const KINDS = {
  better: { colour: BLUE, says: 'we are better' },
  worse: { colour: ORANGE, says: 'the peer is better' },
  // Nobody can be better than a limit, so a ratio below 1 is not a loss.
  limit: { colour: GREY, says: 'share of a limit that we reach' },
} as const

/**
 * Draws one bar per comparison, from 1 (as good as the peer) to the ratio, on a logarithmic scale. A
 * thin line shows the spread of the rounds. Each measurement is a heading with its peers below it.
 * Returns `undefined` if the suite compares nothing.
 */
export function ratioChart(suite: string, rows: readonly Row[]): string | undefined {
  const groups = groupsOf(rows)
  if (groups.length === 0) return undefined
  const compared = groups.flatMap(([, peers]) => peers)
  const title = `${suite}: how many times better we are than each peer`
  const about = SUITES[suite]?.about ?? ''
  const left = MARGIN + INDENT + Math.max(...compared.map((row) => widthOf(labelOf(row)))) + 10
  const names = groups.map(([name]) => widthOf(name, 11, 'bold'))
  const signs = signsOf(compared)
  const key = signs.reduce((sum, sign) => sum + signWidth(sign), 0)
  const words = 2 * MARGIN + Math.max(widthOf(title, 14, 'bold'), widthOf(about), key, ...names)
  const width = Math.max(left + PLOT_WIDTH + RIGHT, words)
  const height = HEAD + groups.length * (GAP + LINE) + compared.length * LINE + MARGIN
  const svg = new Svg(width, height, title)
  svg.text([MARGIN, 24], title, { 'font-size': 14, 'font-weight': 'bold' })
  svg.text([MARGIN, 42], about)
  legend(svg, signs)
  axis(svg, left, height)
  let y = HEAD
  for (const [name, peers] of groups) {
    heading(svg, name, y + GAP + LINE / 2)
    y += GAP + LINE
    for (const [at, row] of peers.entries()) bar(svg, row, left, y + (at + 0.5) * LINE)
    y += peers.length * LINE
  }
  return svg.toText()
}

/** The comparisons, grouped by measurement, in their order. */
function groupsOf(rows: readonly Row[]): [name: string, peers: Row[]][] {
  const groups = new Map<string, Row[]>()
  for (const row of rows) {
    if (row.ratio === undefined) continue
    const group = groups.get(row.name) ?? []
    group.push(row)
    groups.set(row.name, group)
  }
  return [...groups]
}

const labelOf = ({ peerName }: Row) => `against ${peerName}`

function kindOf(row: Row): keyof typeof KINDS {
  if (row.limit || isOurselves(row)) return 'limit'
  return row.ratio! >= 1 ? 'better' : 'worse'
}

interface Sign {
  readonly says: string
  draw(svg: Svg, from: Point, to: Point): void
}

const SPREAD: Sign = {
  says: 'worst to best round',
  draw: (svg, from, to) => svg.line(from, to, { stroke: INK }),
}

const BEYOND: Sign = {
  says: 'beyond the scale',
  draw: (svg, from, to) => {
    svg.line(from, to, { stroke: GREY, 'stroke-width': BAR })
    svg.breakMark([(from[0] + to[0]) / 2, from[1]])
  },
}

/** The entries of the legend: only for what the picture shows. */
function signsOf(compared: readonly Row[]): Sign[] {
  const used = new Set(compared.map(kindOf))
  const kinds = (['better', 'worse', 'limit'] as const).filter((kind) => used.has(kind))
  const bars = kinds.map((kind): Sign => {
    const { colour, says } = KINDS[kind]
    const style = { stroke: colour, 'stroke-width': BAR }
    return { says, draw: (svg, from, to) => svg.line(from, to, style) }
  })
  if (compared.some(({ spread }) => spread)) bars.push(SPREAD)
  return compared.some(({ ratio }) => isBeyond(ratio!)) ? [...bars, BEYOND] : bars
}

const SIGN = 28
const signWidth = ({ says }: Sign) => SIGN + widthOf(says, 10) + MARGIN

function legend(svg: Svg, signs: readonly Sign[]): void {
  let x = MARGIN
  for (const sign of signs) {
    sign.draw(svg, [x, 64], [x + SIGN - 6, 64])
    svg.text([x + SIGN, 68], sign.says, { 'font-size': 10 })
    x += signWidth(sign)
  }
}

function axis(svg: Svg, left: number, height: number): void {
  for (const ratio of [0.1, 1, 10, 100]) {
    const x = place(ratio, left)
    const style = { stroke: ratio === 1 ? INK : FAINT }
    svg.line([x, HEAD - 8], [x, height - MARGIN], style)
    svg.text([x, HEAD - 14], `${ratio} x`, { 'text-anchor': 'middle' })
  }
}

/** The strip behind the heading hides the lines of the scale. */
function heading(svg: Svg, name: string, y: number): void {
  const end = MARGIN + widthOf(name, 11, 'bold')
  svg.line([MARGIN, y], [end, y], { stroke: PAPER, 'stroke-width': LINE - 4 })
  svg.text([MARGIN, y + 4], name, { 'font-weight': 'bold' })
}

function bar(svg: Svg, row: Row, left: number, y: number): void {
  const { ratio, spread } = row
  const at = (value: number) => place(value, left)
  const { colour } = KINDS[kindOf(row)]
  svg.text([left - 10, y + 4], labelOf(row), { 'text-anchor': 'end' })
  svg.line([at(1), y], [at(ratio!), y], { stroke: colour, 'stroke-width': BAR })
  if (spread) svg.line([at(spread[0]), y], [at(spread[1]), y], { stroke: INK })
  if (isBeyond(ratio!)) svg.breakMark([at(ratio!) + (ratio! > 1 ? -16 : 16), y])
  const end = Math.max(at(ratio!), at(spread?.[1] ?? ratio!), at(1))
  svg.text([end + 6, y + 4], `${format(ratio!)} x`, {
    ...(isBeyond(ratio!) && { 'font-weight': 'bold' }),
  })
}

function isBeyond(ratio: number): boolean {
  const decade = Math.log10(ratio)
  return decade < DECADES[0] || decade > DECADES[1]
}

function place(ratio: number, left: number): number {
  const [from, to] = DECADES
  const decade = Math.min(to, Math.max(from, Math.log10(ratio)))
  return left + ((decade - from) / (to - from)) * PLOT_WIDTH
}
