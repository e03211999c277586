import { format, type Row } from '../measure/rows.js'

interface Headline {
  /** A short label that is clear without knowing the suite. */
  readonly says: string
  readonly suite: string
  readonly row: string
}

/** The six rows of the README. Each shows the strongest peer, so losses are visible. */
export const HEADLINES: readonly Headline[] = [
  {
    says: 'hand-over, 32 waiters',
    suite: 'contended',
    row: 'hand-overs, in memory, our server',
  },
  {
    says: 'heartbeats, one call each',
    suite: 'heartbeats',
    row: 'renewals, a call each',
  },
  {
    says: 'expiry lateness, 100,000 leases',
    suite: 'expiry',
    row: 'expiry beside 100,000 leases: how late, counted up to 4 s, p50',
  },
  {
    says: 'failover after kill -9, tied',
    suite: 'failover',
    row: 'from kill -9 to the next first write, our election, tied',
  },
  {
    says: 'lock+unlock on Redis, 64 in flight',
    suite: 'redis',
    row: 'Redis in memory, 64 in flight',
  },
  {
    says: 'lock+unlock on a server, one in flight',
    suite: 'uncontended',
    row: 'server in memory, one after the other, p50',
  },
]

/** The table of the README. Rows without a result are left out. */
export function headlineTable(rows: readonly Row[]): string {
  const lines = HEADLINES.flatMap(({ says, suite, row }) => {
    const found = strongest(rows.filter((each) => each.suite === suite && each.name === row))
    return found ? [line(says, found)] : []
  })
  return ['| | ours | best peer | ratio |', '| --- | --- | --- | --- |', ...lines].join('\n')
}

/** The comparison with our lowest ratio. A limit is not a peer: nobody can pass it. */
function strongest(rows: readonly Row[]): Row | undefined {
  const peers = rows.filter(({ ratio, limit }) => ratio !== undefined && !limit)
  return peers.sort((a, b) => a.ratio! - b.ratio!)[0]
}

function line(says: string, { ours, peer, peerName, unit, ratio }: Row): string {
  const theirs = `${format(peer!)} ${unit}, ${peerName}`
  return `| ${says} | ${format(ours)} ${unit} | ${theirs} | ${format(ratio!)}× |`
}
