import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, it } from 'vitest'
import type { Machine } from '../../../../bench/machine/machine.ts'
import { compare, compareFigures } from '../../../../bench/measure/compare.ts'
import {
  atLeast,
  atMost,
  format,
  met,
  type Row,
  row,
  versus,
} from '../../../../bench/measure/rows.ts'
import { shuffle } from '../../../../bench/measure/seeded-random.ts'
import { machinesText, resultsIn } from '../../../../bench/report/document.ts'
import { growthCurves } from '../../../../bench/report/growth-curves.ts'
import { HEADLINES, headlineTable } from '../../../../bench/report/headlines.ts'
import { ratioChart } from '../../../../bench/report/ratio-chart.ts'
import { lossTables, markdownTable, textTable } from '../../../../bench/report/tables.ts'
import { SUITES } from '../../../../bench/suites/index.ts'
import { ROOT, readSource } from './source-files.ts'

const pairs = { unit: 'pairs/s', better: 'more', peerName: 'Redis' } as const
const time = { unit: 'ms', better: 'less', peerName: 'Redis' } as const

describe('a figure of a bench', () => {
  it('says how many times better we are, whether more is better or less', () => {
    expect(versus('locks', [200], [100], pairs).ratio).toBe(2)
    expect(versus('locks', [200], [100], time).ratio).toBe(0.5)
  })

  it('takes the ratio per round, and shows the worst and the best', () => {
    const measured = versus('locks', [10, 40, 90], [10, 20, 30], pairs)
    expect(measured).toMatchObject({ ours: 40, peer: 20, ratio: 2, spread: [1, 3] })
  })

  it('has no ratio if one of the two did nothing', () => {
    const none = versus('commands while blocked', [0, 0, 0], [5, 7, 9], { ...time, goal: 2 })
    expect(none).toMatchObject({ ours: 0, peer: 7 })
    expect(none.ratio).toBeUndefined()
    expect(met(none)).toBe(true)
    expect(met(versus('the same', [5], [0], { ...time, goal: 2 }))).toBe(false)
  })

  it('meets its goal, or does not', () => {
    expect(met(versus('locks', [200], [100], { ...pairs, goal: 2 }))).toBe(true)
    expect(met(versus('locks', [199], [100], { ...pairs, goal: 2 }))).toBe(false)
    expect(met(row('lag', 'ms', [5], atMost(5)))).toBe(true)
    expect(met(row('lag', 'ms', [6], atMost(5)))).toBe(false)
    expect(met(row('locks', '/s', [5], atLeast(6)))).toBe(false)
  })
})

describe('the suites of a bench', () => {
  it('name only existing measurements', () => {
    const files = Object.entries(SUITES).flatMap(([suite, { group, measurements }]) =>
      measurements.map((measurement) => join('bench/suites', group, suite, `${measurement}.ts`)),
    )
    expect(files.length).toBeGreaterThan(10)
    expect(files.filter((file) => !existsSync(join(ROOT, file)))).toEqual([])
  })
})

describe('the headlines of the README', () => {
  const results = [...resultsIn(pathToFileURL(join(ROOT, 'bench/results/'))).values()]
  const rows = results.flatMap((result) => result.rows)

  it('are six rows, each against the peer that does best', () => {
    const table = headlineTable(rows).split('\n')
    expect(HEADLINES).toHaveLength(6)
    expect(table).toHaveLength(2 + HEADLINES.length)
    for (const [at, { says, suite, row }] of HEADLINES.entries()) {
      const peers = rows.filter((it) => it.suite === suite && it.name === row && !it.limit)
      const worst = Math.min(...peers.map(({ ratio }) => ratio!))
      const best = peers.find(({ ratio }) => ratio === worst)!
      expect(table[2 + at]).toContain(`| ${says} | `)
      expect(table[2 + at]).toContain(`, ${best.peerName} | ${format(worst)}× |`)
    }
  })

  it('show our losses, too', () => {
    const lines = headlineTable(rows).split('\n')
    expect(lines.filter((line) => / 0\.\d+× \|$/.test(line)).length).toBeGreaterThan(1)
  })

  it('leave out missing measurements', () => {
    const others = rows.filter(({ suite }) => suite !== 'expiry')
    expect(headlineTable(rows)).toContain('expiry lateness')
    expect(headlineTable(others)).not.toContain('expiry lateness')
  })
})

describe('the blocks of the bench in the documents', () => {
  const blocksIn = (path: string) => {
    const mark = /<!-- written by npm run bench -- ([^\n]*): begin -->\n(.*?)<!-- /gs
    return new Map([...readSource(path).text.matchAll(mark)].map((it) => [it[1]!, it[2]!]))
  }
  const linesOf = (block: string | undefined) => block?.match(/^\| .*\|$/gm) ?? []

  it('are not empty', () => {
    const page = blocksIn('docs/benchmarks.md')
    expect([...page.keys()]).toEqual(['document, machine', 'document, losses', 'all'])
    for (const [name, block] of page) expect(block, name).not.toMatch(/^\s*$/)
    expect(linesOf(page.get('all')).length).toBeGreaterThan(100)
  })

  it('are all headlines in the README', () => {
    expect(linesOf(blocksIn('README.md').get('all'))).toHaveLength(2 + HEADLINES.length)
  })

  it('shows plots that are stored once, in docs/images', () => {
    const shown = readSource('docs/benchmarks.md').text.match(/images\/bench-[\w-]+\.svg/g) ?? []
    expect(shown.length).toBeGreaterThan(10)
    expect(shown.filter((plot) => !existsSync(join(ROOT, 'docs', plot)))).toEqual([])
    expect(readdirSync(join(ROOT, 'bench/results')).filter((it) => it.endsWith('.svg'))).toEqual([])
  })
})

describe('a shuffled list', () => {
  it('keeps all members, and few neighbours', () => {
    const list = shuffle(Array.from({ length: 10_000 }, (_, at) => at))
    const neighbours = list.filter((value, at) => Math.abs(value - (list[at - 1] ?? -5)) === 1)
    expect(neighbours.length).toBeLessThan(20)
    expect(new Set(list).size).toBe(10_000)
  })
})

describe('a comparison', () => {
  const candidate = (name: string, values: number[], calls: string[] = []) => ({
    name,
    run: async () => {
      calls.push(name)
      return { value: values.shift()! }
    },
  })

  it('lets all take turns, each first in its turn, and does not count the first round', async () => {
    const calls: string[] = []
    const [measured] = await compare({
      name: 'locks',
      unit: 'pairs/s',
      better: 'more',
      ours: candidate('ours', [1, 20, 40], calls),
      peers: [{ ...candidate('theirs', [1000, 10, 10], calls), goal: 3 }, undefined],
      rounds: 2,
    })
    expect(calls).toEqual(['ours', 'theirs', 'theirs', 'ours', 'ours', 'theirs'])
    expect(measured).toMatchObject({ peerName: 'theirs', goal: 3, spread: [2, 4] })
  })

  it('gives only our figure if there is no peer', async () => {
    const ours = candidate('ours', [1, 5])
    const figure = { name: 'lag', unit: 'ms', better: 'less' } as const
    const rows = await compare({ ...figure, ours, peers: [undefined], rounds: 1 })
    expect(rows).toEqual([{ name: 'lag', ours: 5, unit: 'ms', better: 'less' }])
  })

  it('gives several figures of one run, and a row for a goal that is ours alone', async () => {
    const run = (values: number[]) => async () => ({ values })
    const rows = await compareFigures({
      name: 'expiry',
      figures: [
        { name: 'p50', unit: 'ms', better: 'less' },
        { name: 'worst', unit: 'ms', better: 'less', goal: atMost(5) },
      ],
      ours: { name: 'ours', run: run([1, 10]) },
      peers: [{ name: 'theirs', run: run([2, 100]), goal: [1, 20] }],
      rounds: 1,
    })
    const told = rows.map((it) => [it.name, it.peerName, it.ratio, it.goal, met(it)])
    expect(told).toEqual([
      ['p50', 'theirs', 2, 1, true],
      ['worst', undefined, undefined, 5, false],
      ['worst', 'theirs', 10, 20, false],
    ])
  })

  it('compares each of ours with each peer if we have several', async () => {
    const figure = { name: 'takeover', unit: 'ms', better: 'less' } as const
    const ours = [candidate('tied', [1, 1]), candidate('not tied', [1, 20])]
    const peers = [candidate('theirs', [1, 10])]
    const rows = await compare({ ...figure, ours, peers, rounds: 1, together: true })
    expect(rows.map(({ name, ratio }) => [name, ratio])).toEqual([
      ['takeover, tied', 10],
      ['takeover, not tied', 0.5],
    ])
  })

  it('fails if a candidate fails', async () => {
    const broken = { name: 'broken', run: () => Promise.reject(new Error('no server')) }
    const figure = { name: 'locks', unit: '/s', better: 'more' } as const
    await expect(compare({ ...figure, ours: broken, peers: [] })).rejects.toThrow('no server')
  })
})

describe('the report of a bench', () => {
  const good = versus('lock + unlock', [1500], [1000], { ...pairs, goal: 1.2 })
  const bad = versus('wait', [20], [10], { ...time, goal: 1 })
  const cpu = { client: 3, server: 4 }

  it('names a goal that was missed in the table', () => {
    const [head, first, second] = textTable([good, bad]).split('\n')
    expect(head).toMatch(/ours +peer +unit +ratio +spread +goal/)
    expect(first).toMatch(/lock \+ unlock +1,500 +1,000 +Redis +pairs\/s +1.500 x .* ≥ 1.200 +met$/)
    expect(second).toMatch(/0.500 x .* ≥ 1.000 +MISSED$/)
  })

  it('leaves out columns that say nothing on the page', () => {
    const [head] = markdownTable([row('lag', 'ms', [5])]).split('\n')
    expect(head).toBe('| what | ours | unit |')
  })

  it('shows a point that was compared with its own curve as one without a comparison', () => {
    const point = { curve: 'renew', leases: 10_000 }
    const beside = { ...time, peerName: 'renew beside 1,000', cpu: { ours: cpu, peer: cpu } }
    const [, , line] = markdownTable([{ ...versus('renew', [2], [1], beside), point }]).split('\n')
    expect(line).toBe('| renew | 2.000 | ms | 3.0 / – | 4.0 / – |')
  })

  it('lists all our losses, and nothing else', () => {
    const rows = [good, bad, versus('wait', [20], [5], { ...time, peerName: 'etcd' })]
    rows.push(versus('sync', [20], [10], { ...time, peerName: 'a disk', limit: true }))
    rows.push(versus('commands', [1], [0], time), row('lag', 'ms', [6], atMost(5)))
    rows.push(versus('a network', [20], [10], { ...time, peerName: 'the library embedded' }))
    const lines = lossTables(rows.map((it) => ({ suite: 'some', ...it }))).split('\n')
    expect(lines.filter((line) => line.startsWith('| some'))).toEqual([
      '| some | wait | etcd: 0.250 x; Redis: 0.500 x |',
      '| some | commands | Redis: 1.000 against 0 ms |',
      '| some | sync | a disk: 0.500 x |',
      '| some | wait | Redis | 0.500 x | ≥ 1.000 |',
      '| some | lag |  | 6.000 ms | ≤ 5.000 |',
    ])
  })

  it('names the machine and the versions once, and which are missing', () => {
    const of = { on: '', commit: '', node: 'v1', processors: '2 x A', memory: '8 GiB', system: 'S' }
    const known: Machine = { ...of, tmpfs: true, engines: { Redis: '7' }, peers: { pg: '8' } }
    expect(machinesText([known, known])).toBe(
      [
        '- Machine: 2 x A, 8 GiB, S, Node v1; its "disk" is memory (tmpfs).',
        '- Engines: Redis 7.',
        '- Libraries: pg 8.',
      ].join('\n'),
    )
    expect(machinesText([of])).toContain('- Engines: not recorded by 1 of 1 suites.')
  })

  it('draws a bar for each comparison, and nothing without one', () => {
    expect(ratioChart('uncontended', [row('lag', 'ms', [5])])).toBeUndefined()
    const plot = ratioChart('uncontended', [good, bad, row('lag', 'ms', [5])])!
    expect(plot.match(/against Redis/g)).toHaveLength(2)
    expect(plot).toContain('>we are better<')
    expect(plot).not.toContain('beyond the scale')
  })

  it('makes room for the longest label, and cuts off values beyond the scale', () => {
    const peerName = 'a peer with a name that is far longer than any that has ever been measured'
    const plot = ratioChart('uncontended', [versus('lock', [1000], [1], { ...pairs, peerName })])!
    const end = Number(/<text x="([\d.]+)"[^>]*>against a peer/.exec(plot)![1])
    expect(end).toBeGreaterThan(peerName.length * 6)
    expect(plot).toContain('>beyond the scale<')
  })

  it('draws a curve through the points of each, and the peer beside it', () => {
    const point = (leases: number): Row => ({
      ...versus('lock', [leases / 100], [leases / 50], time),
      point: { curve: 'ours', leases },
    })
    const plot = growthCurves('growth', [point(100_000), point(1000)])!
    expect(plot).toContain('>ours<')
    expect(plot).toContain('>Redis<')
    expect(plot.match(/<circle/g)).toHaveLength(4)
    expect(growthCurves('growth', [good])).toBeUndefined()
  })

  it('leaves out the curve of ourselves beside fewer, and dashes the same in the legend', () => {
    const points = Array.from({ length: 7 }, (_, at): Row => {
      const curve = `curve ${at}`
      const beside = { ...time, peerName: `${curve} beside 1,000` }
      return { ...versus(curve, [1], [1], beside), point: { curve, leases: 1000 } }
    })
    const plot = growthCurves('growth', points)!
    expect(plot).not.toContain('beside')
    expect(plot.match(/stroke-dasharray/g)).toHaveLength(2)
  })
})
