import type { LapsedLease } from '../../src/dashboard/feed-messages.ts'
import { formatSpan } from './format.ts'
import type { Mirror } from './mirror.ts'
import { FLAPS_WITHIN_MS, type RecentEvents } from './recent-events.ts'
import { type InstanceView, isHealthy, servicesOf } from './recipes/services.ts'

/** A queue this long, or a wait this long, needs attention. */
const LONG_QUEUE = 10
const LONG_WAIT_MS = 60_000
const QUEUES_SHOWN = 8
const SCANNED_MAX = 2000
/** An expiry this late delays all waiters. */
const LAG_MS = 500

export interface Concern {
  readonly id: string
  readonly kind: 'storage' | 'lapsed' | 'queue' | 'service' | 'flapping' | 'lag'
  readonly level: 'bad' | 'warn'
  readonly title: string
  readonly detail: string
  /** The view that shows it. */
  readonly href: string
}

export interface Situation {
  readonly mirror: Mirror
  readonly recent: RecentEvents
  readonly lapsed: readonly LapsedLease[]
  readonly storageError: string | undefined
  readonly expiryLag: number | undefined
  readonly now: number
}

/** Everything that needs attention, the worst first. */
export function concernsOf(situation: Situation): Concern[] {
  const { storageError, expiryLag } = situation
  const concerns: Concern[] = []
  if (storageError !== undefined) {
    const title = 'The store cannot be written'
    concerns.push({
      id: 'storage',
      kind: 'storage',
      level: 'bad',
      title,
      detail: storageError,
      href: '#/',
    })
  }
  if (expiryLag !== undefined && expiryLag > LAG_MS) {
    const detail = `A lease expired ${formatSpan(expiryLag)} late, so waiters wait longer.`
    const title = 'Expiry is late'
    concerns.push({ id: 'lag', kind: 'lag', level: 'bad', title, detail, href: '#/' })
  }
  return [
    ...concerns,
    ...services(situation),
    ...lapses(situation),
    ...queues(situation),
    ...flapping(situation),
  ]
}

function services({ mirror }: Situation): Concern[] {
  return servicesOf(mirror).flatMap(({ name, instances, healthy }): Concern[] => {
    const unhealthy = instances.filter((instance) => !isHealthy(instance))
    const failing = unhealthy.filter(({ drainedBy }) => drainedBy === undefined)
    // A drained instance is intended, as long as others are healthy.
    if (unhealthy.length === 0 || (failing.length === 0 && healthy > 0)) return []
    const reported = failing.length > 0 ? failing : unhealthy
    return [
      {
        id: `service/${name}`,
        kind: 'service',
        level: healthy === 0 && failing.length > 0 ? 'bad' : 'warn',
        title: `${name}: ${healthy} of ${instances.length} healthy`,
        detail: describe(reported),
        href: `#/services/${encodeURIComponent(name)}`,
      },
    ]
  })
}

/** Describes the first of the unhealthy instances, and counts the others. */
function describe(instances: readonly InstanceView[]): string {
  const [first] = instances
  if (first === undefined) return ''
  const { id, holder, status, note, drainedBy } = first
  const more = instances.length > 1 ? ` and ${instances.length - 1} more are` : ' is'
  // The note of a drain already says who drained the instance and why.
  const why = drainedBy === undefined ? `${status}${note ? `: ${note}` : ''}` : note
  return `${id} of ${holder}${more} ${why ?? `drained by ${drainedBy}`}`
}

function lapses({ lapsed, now }: Situation): Concern[] {
  return lapsed
    .filter(({ until }) => until > now)
    .map(({ lease, holder, since, until }) => ({
      id: `lapsed/${lease}`,
      kind: 'lapsed' as const,
      level: 'warn' as const,
      title: `${holder} has lapsed`,
      detail: `Its ttl ended ${formatSpan(now - since)} ago without a heartbeat; lost in ${formatSpan(until - now)}.`,
      href: `#/leases/${encodeURIComponent(lease)}`,
    }))
}

function queues({ mirror, now }: Situation): Concern[] {
  const found: { readonly concern: Concern; readonly waiting: number }[] = []
  let scanned = 0
  for (const key of mirror.contended) {
    if (++scanned > SCANNED_MAX) break
    const row = mirror.keys.get(key)
    // Candidates may wait for a term as long as they like.
    if (row === undefined || key.startsWith('election/')) continue
    const waiting = row.count - row.held
    const first = row.claims[row.held]
    const waited = first === undefined ? 0 : now - first.claimedAt
    if (waiting < LONG_QUEUE && waited < LONG_WAIT_MS) continue
    const detail = `${waiting} ${waiting === 1 ? 'waits' : 'wait'}, the first for ${formatSpan(waited)}, behind ${row.claims[0]?.holder ?? 'nobody'}.`
    const href = `#/keys/${encodeURIComponent(key)}`
    const title = `Long queue on ${key}`
    const concern = {
      id: `queue/${key}`,
      kind: 'queue',
      level: 'warn',
      title,
      detail,
      href,
    } as const
    found.push({ concern, waiting })
  }
  found.sort((a, b) => b.waiting - a.waiting)
  return found.slice(0, QUEUES_SHOWN).map(({ concern }) => concern)
}

function flapping({ recent, now }: Situation): Concern[] {
  return recent.flapping(now).map(({ holder, times, last }) => ({
    id: `flapping/${holder}`,
    kind: 'flapping' as const,
    level: 'warn' as const,
    title: `${holder} flaps`,
    detail: `Its leases expired ${times} times in ${formatSpan(FLAPS_WITHIN_MS)}, last ${formatSpan(now - last)} ago.`,
    href: `#/leases?holder=${encodeURIComponent(holder)}`,
  }))
}
