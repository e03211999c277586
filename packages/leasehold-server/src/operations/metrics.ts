import type { IntervalHistogram } from 'node:perf_hooks'
import type { Access } from '../access/index.ts'
import type { StreamStats } from '../stream/surroundings.ts'
import { Exposition, type Sample } from './exposition.ts'
import type { MeasuredStore } from './measured-store.ts'
import type { StoreObserver } from './observer.ts'

export interface Sources {
  readonly store: MeasuredStore
  readonly observer: StoreObserver
  readonly access: Access
  readonly stats: Readonly<StreamStats>
  readonly loop: IntervalHistogram
  readonly isReady: () => boolean
}

/** All there is to measure. docs/server.md lists the names; a test compares the two. */
export async function metricsOf(sources: Sources): Promise<string> {
  const { store, observer, access, stats, loop } = sources
  const waiting = await observer.countWaiters()
  await access.countUsage()
  const out = new Exposition()
  const { guarantees, calls } = store
  out.gauge('leasehold_info', 'The store that is served.', [
    [{ engine: guarantees.engine, durability: guarantees.durability }, 1],
  ])
  out.gauge('leasehold_ready', 'Whether it takes work: 1, or 0.', sources.isReady() ? 1 : 0)
  out.counter(
    'leasehold_calls_total',
    'Calls of the store, by operation.',
    Object.entries(calls).map(([operation, count]): Sample => [{ operation }, count]),
  )
  out.counter('leasehold_grants_total', 'Leases asked for.', calls.grant)
  out.counter('leasehold_renewals_total', 'Leases in calls of renew.', store.renewals)
  out.counter(
    'leasehold_failures_total',
    'Changes that failed or were refused, by code.',
    [...store.failures].map(([code, count]): Sample => [{ code }, count]),
  )
  out.histogram(
    'leasehold_commit_seconds',
    'From asking for a change to its answer, which is durable; sampled.',
    store.commits,
  )
  out.counter('leasehold_claims_total', 'Claims made since the first scrape.', observer.claimed)
  out.counter(
    'leasehold_ended_claims_total',
    'Claims that ended since the first scrape, by reason.',
    Object.entries(observer.removed).map(([reason, count]): Sample => [{ reason }, count]),
  )
  out.counter(
    'leasehold_expiries_total',
    'Claims that expired since the first scrape.',
    observer.removed['expired'] ?? 0,
  )
  out.histogram(
    'leasehold_expiry_lag_seconds',
    'How late a lease expired that was made to be timed, once per scrape.',
    observer.expiryLag,
  )
  out.gauge('leasehold_waiting', 'Claims that wait, on the first 20000 keys.', waiting)
  writeStreams(out, stats)
  writePrincipals(out, access)
  writeProcess(out, loop)
  return out.toString()
}

function writeStreams(out: Exposition, stats: Readonly<StreamStats>): void {
  out.gauge('leasehold_connections', 'Streams that are open.', stats.connections)
  out.counter('leasehold_connections_total', 'Streams that were opened.', stats.connected)
  out.counter('leasehold_requests_total', 'Requests on streams.', stats.requests)
  out.counter('leasehold_notices_total', 'Notices sent on streams.', stats.notices)
  out.counter('leasehold_dropped_total', 'Clients dropped as too slow.', stats.dropped)
  out.counter('leasehold_malformed_total', 'Clients dropped as malformed.', stats.malformed)
}

function writePrincipals(out: Exposition, access: Access): void {
  const use = [...access.usage()]
  const samples = (name: 'leases' | 'claims' | 'watches' | 'calls' | 'refused') =>
    use.map(([principal, usage]): Sample => [{ principal }, usage[name]])
  out.gauge('leasehold_principal_leases', 'Leases, by who has them.', samples('leases'))
  out.gauge('leasehold_principal_claims', 'Claims, by who has them.', samples('claims'))
  out.gauge('leasehold_principal_watches', 'Watches, by who has them.', samples('watches'))
  out.counter('leasehold_principal_calls_total', 'Calls, by who made them.', samples('calls'))
  out.counter(
    'leasehold_principal_refused_total',
    'Calls refused by a quota or a right, by who made them.',
    samples('refused'),
  )
}

function writeProcess(out: Exposition, loop: IntervalHistogram): void {
  const delays = [0.5, 0.99, 1].map((quantile): Sample => {
    const delay = Math.max(0, loop.percentile(quantile * 100) / 1e9 - LOOP_RESOLUTION_MS / 1000)
    return [{ quantile: String(quantile) }, delay]
  })
  out.gauge('leasehold_event_loop_delay_seconds', 'Since the last scrape, by quantile.', delays)
  loop.reset()
  const { rss, heapUsed } = process.memoryUsage()
  const { user, system } = process.cpuUsage()
  out.gauge('process_resident_memory_bytes', 'Memory of the process.', rss)
  out.gauge('nodejs_heap_size_used_bytes', 'Memory in use by objects.', heapUsed)
  out.counter('process_cpu_seconds_total', 'Time of the processor.', (user + system) / 1e6)
}

/** The delay is told with the time for which the loop waits by itself. */
export const LOOP_RESOLUTION_MS = 10
