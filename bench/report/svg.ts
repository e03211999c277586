/** Builds an SVG picture shape by shape. It has its own background: a page may be light or dark. */
export class Svg {
  readonly #width: number
  readonly #height: number
  readonly #title: string
  readonly #shapes: string[] = []

  constructor(width: number, height: number, title: string) {
    this.#width = width
    this.#height = height
    this.#title = title
  }

  line(from: Point, to: Point, style: Style): void {
    this.path([from, to], style)
  }

  path(points: readonly Point[], style: Style): void {
    const list = points.map(([x, y]) => `${short(x)},${short(y)}`).join(' ')
    this.#shapes.push(`<polyline points="${list}" fill="none"${attributes(style)}/>`)
  }

  /** Two strokes across a bar: the bar is longer than the scale. */
  breakMark([x, y]: Point): void {
    for (const at of [x - 2, x + 3]) {
      this.line([at - 3, y + 8], [at + 3, y - 8], { stroke: PAPER, 'stroke-width': 3 })
    }
  }

  circle([x, y]: Point, radius: number, style: Style): void {
    this.#shapes.push(
      `<circle cx="${short(x)}" cy="${short(y)}" r="${radius}"${attributes({ fill: 'none', ...style })}/>`,
    )
  }

  text([x, y]: Point, words: string, style: Style = {}): void {
    this.#shapes.push(
      `<text x="${short(x)}" y="${short(y)}"${attributes({ fill: INK, ...style })}>${escaped(words)}</text>`,
    )
  }

  toText(): string {
    const [width, height] = [this.#width, this.#height].map(Math.ceil)
    const size = `width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"`
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img" font-family="system-ui, 'DejaVu Sans', sans-serif" font-size="11">`,
      `<title>${escaped(this.#title)}</title>`,
      `<rect width="100%" height="100%" rx="6" fill="${PAPER}"/>`,
      ...this.#shapes,
      '</svg>\n',
    ].join('\n')
  }
}

export type Point = readonly [x: number, y: number]
export type Style = Readonly<Record<string, string | number>>

export const PAPER = '#ffffff'
export const INK = '#24292f'
export const GREY = '#8c959f'
export const FAINT = '#d8dee4'
export const BLUE = '#3a80c1'
export const ORANGE = '#d2691e'

/** The width in the widest of the usual fonts, so that nothing is cut off. */
export function widthOf(words: string, size = 11, weight: 'normal' | 'bold' = 'normal'): number {
  return words.length * size * (weight === 'bold' ? 0.66 : 0.6)
}

function attributes(style: Style): string {
  return Object.entries(style)
    .map(([name, value]) => ` ${name}="${value}"`)
    .join('')
}

function escaped(words: string): string {
  return words.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

function short(value: number): number {
  return Math.round(value * 10) / 10
}
