import { format, type Row } from './rows.js'
import { BLUE, FAINT, INK, ORANGE, Svg } from './svg.js'

const WIDTH = 760
const LEFT = 400
const RIGHT = 60
const LINE = 22
/** From a tenth of the peer to a hundred times the peer; beyond that a bar is cut off. */
const DECADES = [-1, 2] as const

/**
 * One bar a comparison, from 1 (as good as the peer) to the ratio, on a logarithmic scale; the spread
 * of the rounds is a thin line. `undefined` where a suite compares nothing.
 */
export function chart(suite: string, rows: readonly Row[]): string | undefined {
  const compared = rows.filter(({ ratio }) => ratio !== undefined)
  if (compared.length === 0) return undefined
  const height = 50 + compared.length * LINE
  const svg = new Svg(WIDTH, height, `${suite}: how many times better than the peer`)
  for (const ratio of [0.1, 1, 10, 100]) {
    const x = place(ratio)
    svg.line([x, 24], [x, height - 10], { stroke: ratio === 1 ? INK : FAINT })
    svg.text([x, 16], `${ratio} x`, { 'text-anchor': 'middle' })
  }
  for (const [at, row] of compared.entries()) bar(svg, row, 36 + at * LINE)
  return svg.toText()
}

function bar(svg: Svg, { name, peerName, ratio, spread, limit }: Row, y: number): void {
  // Nobody can be better than a limit, so that to be below one is no defeat.
  const colour = limit ? INK : ratio! >= 1 ? BLUE : ORANGE
  svg.text([LEFT - 14, y + 4], `${name}, against ${peerName}`, {
    'text-anchor': 'end',
    'font-size': 10,
  })
  svg.line([place(1), y], [place(ratio!), y], { stroke: colour, 'stroke-width': 10 })
  if (spread) svg.line([place(spread[0]), y], [place(spread[1]), y], { stroke: INK })
  const end = Math.max(place(ratio!), place(spread?.[1] ?? ratio!), place(1))
  svg.text([end + 6, y + 4], format(ratio!))
}

function place(ratio: number): number {
  const [from, to] = DECADES
  const decade = Math.min(to, Math.max(from, Math.log10(ratio)))
  return LEFT + ((decade - from) / (to - from)) * (WIDTH - LEFT - RIGHT)
}
