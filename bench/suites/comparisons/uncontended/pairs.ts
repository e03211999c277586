import type { Locker } from '../../../lockers/index.js'
import { type Candidate, compare, type Peer } from '../../../measure/compare.js'
import {
  medianLatency,
  type Operation,
  pairOf,
  throughput,
} from '../../../measure/latency-and-throughput.js'
import type { Row } from '../../../measure/rows.js'

const RUN_MS = 1000
export const TTL = 30_000

export interface Entrant {
  readonly name: string
  readonly locker: Locker
  readonly pids?: readonly number[] | undefined
  readonly goals?: { readonly sequential?: number; readonly inFlight?: number }
}

export interface PairsOptions {
  /** The kind: in memory, durable. */
  readonly what: string
  readonly ours: Entrant
  readonly peers: readonly (Entrant | undefined)[]
  /** The cost that no lock can avoid, once per pair. */
  readonly limit: { readonly name: string; readonly act: Operation } | undefined
}

/** Lock and unlock of keys that nobody else wants: one after the other, and 64 at a time. */
export async function comparePairs({ what, ours, peers, limit }: PairsOptions): Promise<Row[]> {
  const entrants = peers.filter((entrant) => entrant !== undefined)
  const sequential = ({ name, locker, pids, goals }: Entrant): Peer => {
    const pair = pairOf(locker)(0)
    return { name, pids, goal: goals?.sequential, run: () => medianLatency(pair, RUN_MS) }
  }
  const inFlight = ({ name, locker, pids, goals }: Entrant): Peer => {
    const pair = pairOf(locker)
    return { name, pids, goal: goals?.inFlight, run: () => throughput(pair, 64, RUN_MS) }
  }
  const bound: (Candidate & { limit: true }) | undefined = limit && {
    name: limit.name,
    limit: true,
    run: () => medianLatency(limit.act, RUN_MS),
  }
  return [
    ...(await compare({
      name: `${what}, one after the other, p50`,
      unit: 'µs',
      better: 'less',
      ours: sequential(ours),
      peers: [...entrants.map(sequential), bound],
    })),
    ...(await compare({
      name: `${what}, 64 in flight`,
      unit: 'pairs/s',
      better: 'more',
      ours: inFlight(ours),
      peers: entrants.map(inFlight),
    })),
  ]
}

/** Opens the lockers whose engine is installed. */
export async function entrantsOn<Name extends string>(
  engine: { readonly port: number; readonly pid: number } | undefined,
  lockers: Readonly<Record<Name, (options: { port: number; ttl: number }) => Promise<Locker>>>,
  names: readonly Name[],
  goals: Partial<Record<Name, Entrant['goals']>> = {},
): Promise<Entrant[]> {
  if (!engine) return []
  return Promise.all(
    names.map(async (name) => ({
      name,
      locker: await lockers[name]({ port: engine.port, ttl: TTL }),
      pids: [engine.pid],
      ...(goals[name] && { goals: goals[name] }),
    })),
  )
}
