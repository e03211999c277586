import { format, met, type Row } from '../measure/rows.js'

const HEAD = [
  '',
  'ours',
  'peer',
  '',
  'unit',
  'ratio',
  'spread',
  'goal',
  '',
  'µs client',
  'µs server',
]

/** The same lock and unlock without a server. The comparison shows the cost of the network. */
const EMBEDDED = 'the library embedded'

/** Whether the peer is our own product under other conditions. That is never a loss. */
export function isOurselves(row: Row): boolean {
  return row.peerName === EMBEDDED || isPointBesideFewer(row)
}

/** Whether a point of a curve is compared with the same operation beside the fewest leases. */
function isPointBesideFewer({ peerName, point }: Row): boolean {
  return point !== undefined && peerName?.startsWith(`${point.curve} beside`) === true
}

/** A point that was only compared with its own curve is shown without a comparison. */
function shown(row: Row): Row {
  if (!isPointBesideFewer(row)) return row
  const { peer: _peer, peerName: _name, ratio: _ratio, spread: _ofTheRatio, ...plain } = row
  return { ...plain, ...(row.cpu && { cpu: { ours: row.cpu.ours } }) }
}

/** The cells of a row. */
export function cellsOf(given: Row): string[] {
  const row = shown(given)
  const { ratio, spread, goal, better, peer, cpu } = row
  const sign = peer === undefined && better === 'less' ? '≤' : '≥'
  const both = (of: 'client' | 'server') =>
    cpu ? [cpu.ours, cpu.peer].map((one) => one?.[of]?.toFixed(1) ?? '–').join(' / ') : ''
  return [
    row.name,
    format(row.ours),
    peer === undefined ? '' : format(peer),
    row.peerName ?? '',
    row.unit,
    ratio === undefined ? '' : `${format(ratio)} x`,
    spread ? `${format(spread[0])} – ${format(spread[1])}` : '',
    goal === undefined ? '' : `${sign} ${format(goal)}`,
    goal === undefined ? '' : met(row) ? 'met' : 'MISSED',
    both('client'),
    both('server'),
  ]
}

export function textTable(rows: readonly Row[]): string {
  const table = [HEAD, ...rows.map(cellsOf)]
  const widths = HEAD.map((_, column) => Math.max(...table.map((line) => line[column]!.length)))
  const numeric = new Set([1, 2, 5])
  return table
    .map((line) =>
      line
        .map((cell, at) =>
          numeric.has(at) ? cell.padStart(widths[at]!) : cell.padEnd(widths[at]!),
        )
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** A Markdown table without the empty columns. */
export function markdownTable(rows: readonly Row[]): string {
  const head = ['what', 'ours', 'theirs', 'against', 'unit', 'ratio', 'spread', 'goal', '']
  head.push('client µs, ours / theirs', 'server µs, ours / theirs')
  const lines = rows.map(cellsOf)
  const used = head.map((_, at) => lines.some((line) => line[at] !== ''))
  const keep = (cells: readonly string[]) => cells.filter((_, at) => used[at])
  return markdown(keep(head), lines.map(keep))
}

/** All losses: against peers, against limits, and the missed goals. */
export function lossTables(rows: readonly Row[]): string {
  const lost = rows.filter((row) => isLost(row) && !isOurselves(row))
  const head = ['suite', 'what', 'against, and our ratio']
  const [peers, limits] = [
    lost.filter(({ limit }) => !limit),
    lost.filter(({ limit }) => limit),
  ].map((some) => markdown(head, lossLines(some)))
  const missed = rows.filter((row) => !met(row))
  const goals = missed.map((row) => {
    const [name, ours, , against, unit, ratio, , goal] = cellsOf(row)
    return [row.suite ?? '', name!, against!, ratio || `${ours} ${unit}`, goal!]
  })
  return [
    'Where a peer is better:',
    peers,
    'What we reach of a limit that nobody can pass:',
    limits,
    'Goals that we missed:',
    markdown(['suite', 'what', 'against', 'reached', 'goal'], goals),
  ].join('\n\n')
}

/** Compares the values if there is no ratio because one of them is zero. */
function isLost({ ours, peer, ratio, better }: Row): boolean {
  if (ratio !== undefined) return ratio < 1
  return peer !== undefined && (better === 'more' ? ours < peer : ours > peer)
}

/** One line per measurement, with all peers that are better, the best first. */
function lossLines(rows: readonly Row[]): string[][] {
  const groups = new Map<string, Row[]>()
  for (const row of rows) {
    const what = `${row.suite}/${row.name}`
    groups.set(what, [...(groups.get(what) ?? []), row])
  }
  return [...groups.values()].map((group) => {
    const sorted = group.sort((a, b) => (a.ratio ?? 0) - (b.ratio ?? 0))
    const { suite = '', name } = sorted[0]!
    return [suite, name, sorted.map(lossOf).join('; ')]
  })
}

function lossOf({ peerName, ratio, ours, peer, unit }: Row): string {
  const figures = `${format(ours)} against ${format(peer!)} ${unit}`
  return `${peerName}: ${ratio === undefined ? figures : `${format(ratio)} x`}`
}

function markdown(head: readonly string[], lines: readonly (readonly string[])[]): string {
  const rule = head.map(() => '---')
  return [head, rule, ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}
