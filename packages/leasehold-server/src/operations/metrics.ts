import type { IntervalHistogram } from 'node:perf_hooks'
import type { Access } from '../access/index.ts'
import type { StreamStats } from '../stream/stream-dependencies.ts'
import { Exposition, type Sample } from './exposition.ts'
import type { MeasuredStore } from './measured-store.ts'
import type { StoreObserver } from './store-observer.ts'

export interface MetricSources {
  readonly store: MeasuredStore
  readonly observer: StoreObserver
  readonly access: Access
  readonly stats: Readonly<StreamStats>
  readonly loop: IntervalHistogram
  readonly isReady: () => boolean
}

/** All metrics of a server. docs/server.md lists their names; a test compares the two. */
export async function metricsOf(sources: MetricSources): Promise<string> {
  const { store, observer, access, stats, loop } = sources
  const waiting = await observer.countWaiters()
  await access.countUsage()
  const out = new Exposition()
  const { guarantees, calls } = store
  out.gauge('leasehold_info', 'The served store.', [
    [{ engine: guarantees.engine, durability: guarantees.durability }, 1],
  ])
  out.gauge('leasehold_ready', '1 if the server accepts work, else 0.', sources.isReady() ? 1 : 0)
  out.counter(
    'leasehold_calls_total',
    'Store calls by operation.',
    Object.entries(calls).map(([operation, count]): Sample => [{ operation }, count]),
  )
  out.counter('leasehold_grants_total', 'Requested leases.', calls.grant)
  out.counter('leasehold_renewals_total', 'Leases in renew calls.', store.renewals)
  out.counter(
    'leasehold_failures_total',
    'Failed or refused changes by error code.',
    [...store.failures].map(([code, count]): Sample => [{ code }, count]),
  )
  out.histogram(
    'leasehold_commit_seconds',
    'Time from a change request to its durable answer; sampled.',
    store.commits,
  )
  out.counter('leasehold_claims_total', 'Claims since the first scrape.', observer.claimed)
  out.counter(
    'leasehold_ended_claims_total',
    'Ended claims since the first scrape, by reason.',
    Object.entries(observer.removed).map(([reason, count]): Sample => [{ reason }, count]),
  )
  out.counter(
    'leasehold_expiries_total',
    'Expired claims since the first scrape.',
    observer.removed['expired'] ?? 0,
  )
  out.histogram(
    'leasehold_expiry_lag_seconds',
    'How late a probe lease expired; one probe per scrape.',
    observer.expiryLag,
  )
  out.gauge('leasehold_waiting', 'Waiting claims on the first 20000 keys.', waiting)
  writeStreams(out, stats)
  writePrincipals(out, access)
  writeProcess(out, loop)
  return out.toString()
}

function writeStreams(out: Exposition, stats: Readonly<StreamStats>): void {
  out.gauge('leasehold_connections', 'Open streams.', stats.connections)
  out.counter('leasehold_connections_total', 'Opened streams.', stats.connected)
  out.counter('leasehold_requests_total', 'Requests on streams.', stats.requests)
  out.counter('leasehold_notices_total', 'Notices sent on streams.', stats.notices)
  out.counter('leasehold_dropped_total', 'Clients disconnected as too slow.', stats.dropped)
  out.counter('leasehold_malformed_total', 'Clients that sent malformed data.', stats.malformed)
}

function writePrincipals(out: Exposition, access: Access): void {
  const use = [...access.usage()]
  const samples = (name: 'leases' | 'claims' | 'watches' | 'calls' | 'refused') =>
    use.map(([principal, usage]): Sample => [{ principal }, usage[name]])
  out.gauge('leasehold_principal_leases', 'Leases by principal.', samples('leases'))
  out.gauge('leasehold_principal_claims', 'Claims by principal.', samples('claims'))
  out.gauge('leasehold_principal_watches', 'Watches by principal.', samples('watches'))
  out.counter('leasehold_principal_calls_total', 'Calls by principal.', samples('calls'))
  out.counter(
    'leasehold_principal_refused_total',
    'Calls refused by a quota or a right, by principal.',
    samples('refused'),
  )
}

function writeProcess(out: Exposition, loop: IntervalHistogram): void {
  const delays = [0.5, 0.99, 1].map((quantile): Sample => {
    const delay = Math.max(0, loop.percentile(quantile * 100) / 1e9 - LOOP_RESOLUTION_MS / 1000)
    return [{ quantile: String(quantile) }, delay]
  })
  const help = 'Event loop delay since the last scrape, by quantile.'
  out.gauge('leasehold_event_loop_delay_seconds', help, delays)
  loop.reset()
  const { rss, heapUsed } = process.memoryUsage()
  const { user, system } = process.cpuUsage()
  out.gauge('process_resident_memory_bytes', 'Resident memory of the process.', rss)
  out.gauge('nodejs_heap_size_used_bytes', 'Used JavaScript heap.', heapUsed)
  out.counter('process_cpu_seconds_total', 'Processor time of the process.', (user + system) / 1e6)
}

/** Node's measured delay includes this sampling interval. */
export const LOOP_RESOLUTION_MS = 10
