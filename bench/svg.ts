/** Writes a picture, one shape after the other. Colours are readable on light and on dark paper. */
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
    const size = `width="${this.#width}" height="${this.#height}" viewBox="0 0 ${this.#width} ${this.#height}"`
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img" font-family="system-ui, 'DejaVu Sans', sans-serif" font-size="11">`,
      `<title>${escaped(this.#title)}</title>`,
      ...this.#shapes,
      '</svg>\n',
    ].join('\n')
  }
}

export type Point = readonly [x: number, y: number]
export type Style = Readonly<Record<string, string | number>>

export const INK = '#767676'
export const FAINT = '#76767655'
export const BLUE = '#3a80c1'
export const ORANGE = '#d2691e'

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
