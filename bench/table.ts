import { format, met, type Row } from './rows.js'

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

/** What a row says, in the cells of a table. */
export function cellsOf(row: Row): string[] {
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

/** For a page; columns that say nothing are left out. */
export function markdownTable(rows: readonly Row[]): string {
  const head = ['what', 'ours', 'theirs', 'against', 'unit', 'ratio', 'spread', 'goal', '']
  head.push('client µs, ours / theirs', 'server µs, ours / theirs')
  const lines = rows.map(cellsOf)
  const used = head.map((_, at) => lines.some((line) => line[at] !== ''))
  const keep = (cells: readonly string[]) => cells.filter((_, at) => used[at])
  const rule = keep(head).map(() => '---')
  return [keep(head), rule, ...lines.map(keep)]
    .map((cells) => `| ${cells.join(' | ')} |`)
    .join('\n')
}
