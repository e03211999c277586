import { format, type Row } from './rows.js'

interface Headline {
  /** In the words of somebody who has never heard of the suite. */
  readonly says: string
  readonly suite: string
  readonly row: string
  readonly peers: readonly string[]
}

/** What the reader of the README asks first: also where we lose. */
export const HEADLINES: readonly Headline[] = [
  {
    says: 'a key goes to the next of 32 who wait for it',
    suite: 'contended',
    row: 'hand-overs, in memory, our server',
    peers: ['simple-redis-mutex', 'redis-semaphore', 'redlock 5'],
  },
  {
    says: 'the same, on the disk',
    suite: 'contended',
    row: 'hand-overs, on the disk, our server',
    peers: ['etcd Lock service'],
  },
  {
    says: 'heartbeats, a call each',
    suite: 'heartbeats',
    row: 'renewals, a call each',
    peers: ['Redis, PEXPIRE by a compare script', 'etcd keepalive'],
  },
  {
    says: 'how late an expired lease is noticed beside 100,000 others, counted up to 4 s',
    suite: 'expiry',
    row: 'expiry beside 100,000 leases: how late, counted up to 4 s, p50',
    peers: ['Redis keys', 'etcd leases'],
  },
  {
    says: 'from kill -9 of a leader to the first write of the next, tied to its connection',
    suite: 'failover',
    row: 'from kill -9 to the next first write, our election, tied',
    peers: ['advisory-lock', 'redlock 5', 'etcd3 election'],
  },
  {
    says: 'the same, not tied: when its ttl of 2 s is over',
    suite: 'failover',
    row: 'from kill -9 to the next first write, our election',
    peers: ['redlock 5', 'etcd3 election'],
  },
  {
    says: 'how long a holder believes that it holds when the store hangs for 8 s, at a ttl of 2 s',
    suite: 'loss',
    row: 'a store frozen for 8 s: the holder believes for, counted up to 12 s, our server',
    peers: ['verrou', 'redis-semaphore', 'redlock 5'],
  },
  {
    says: 'lock and unlock on the same Redis, 64 at a time',
    suite: 'redis',
    row: 'Redis in memory, 64 in flight',
    peers: ['redis-semaphore', 'redlock 5'],
  },
  {
    says: 'the same, on the disk of that Redis',
    suite: 'redis',
    row: 'Redis on the disk, 64 in flight',
    peers: ['redis-semaphore', 'redlock 5'],
  },
  {
    says: 'lock and unlock one after the other, our server against Redis by hand',
    suite: 'uncontended',
    row: 'server in memory, one after the other, p50',
    peers: ['raw ioredis'],
  },
]

/** The table for the README, of what has been measured. */
export function headlineTable(rows: readonly Row[]): string {
  const lines = HEADLINES.flatMap(({ says, suite, row, peers }) =>
    peers.flatMap((peerName) => {
      const found = rows.find(
        (each) => each.suite === suite && each.name === row && each.peerName === peerName,
      )
      return found ? [line(says, found)] : []
    }),
  )
  return [
    '| | ours | theirs | against | times better |',
    '| --- | --- | --- | --- | --- |',
    ...lines,
  ].join('\n')
}

function line(says: string, { ours, peer, peerName, unit, ratio }: Row): string {
  const theirs = peer === undefined ? '' : `${format(peer)} ${unit}`
  const better = ratio === undefined ? '' : `${format(ratio)} x`
  return `| ${says} | ${format(ours)} ${unit} | ${theirs} | ${peerName} | ${better} |`
}
