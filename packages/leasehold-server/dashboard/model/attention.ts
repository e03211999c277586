import type { LapsedLease } from '../../src/dashboard/sample.ts'
import { spoken } from './format.ts'
import type { Mirror } from './mirror.ts'
import { FLAPS_WITHIN_MS, type Recent } from './recent.ts'
import { type InstanceView, isHealthy, servicesOf } from './services.ts'

/** So many wait, or somebody has for so long: it is worth a look. */
const LONG_LINE = 10
const LONG_WAIT_MS = 60_000
const LINES_SHOWN = 8
const SCANNED_MAX = 2000
/** An expiry that is so late delays everybody who waits. */
const LAG_MS = 500

export interface Concern {
  readonly id: string
  readonly kind: 'trouble' | 'lapsed' | 'queue' | 'service' | 'flapping' | 'lag'
  readonly level: 'bad' | 'warn'
  readonly title: string
  readonly detail: string
  /** Where on the page it is seen. */
  readonly href: string
}

export interface Situation {
  readonly mirror: Mirror
  readonly recent: Recent
  readonly lapsed: readonly LapsedLease[]
  readonly trouble: string | undefined
  readonly expiryLag: number | undefined
  readonly now: number
}

/** What somebody should look at, the worst first. */
export function concernsOf(situation: Situation): Concern[] {
  const { trouble, expiryLag } = situation
  const concerns: Concern[] = []
  if (trouble !== undefined) {
    const title = 'The store cannot be written'
    concerns.push({
      id: 'trouble',
      kind: 'trouble',
      level: 'bad',
      title,
      detail: trouble,
      href: '#/',
    })
  }
  if (expiryLag !== undefined && expiryLag > LAG_MS) {
    const detail = `A lease ran out ${spoken(expiryLag)} after its time: whoever waits, waits longer.`
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
    const ill = instances.filter((instance) => !isHealthy(instance))
    const failing = ill.filter(({ drainedBy }) => drainedBy === undefined)
    // What somebody has drained is as it should be, as long as others are there.
    if (ill.length === 0 || (failing.length === 0 && healthy > 0)) return []
    const meant = failing.length > 0 ? failing : ill
    return [
      {
        id: `service/${name}`,
        kind: 'service',
        level: healthy === 0 && failing.length > 0 ? 'bad' : 'warn',
        title: `${name}: ${healthy} of ${instances.length} healthy`,
        detail: conditionOf(meant),
        href: `#/services/${encodeURIComponent(name)}`,
      },
    ]
  })
}

/** Which instances are not used and why, by the first of them. */
function conditionOf(instances: readonly InstanceView[]): string {
  const [first] = instances
  if (first === undefined) return ''
  const { id, holder, status, note, drainedBy } = first
  const more = instances.length > 1 ? ` and ${instances.length - 1} more are` : ' is'
  // The note of a drain says by itself that it is one, by whom and why.
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
      detail: `No heartbeat since its ttl ran out ${spoken(now - since)} ago; lost in ${spoken(until - now)}.`,
      href: `#/leases/${encodeURIComponent(lease)}`,
    }))
}

function queues({ mirror, now }: Situation): Concern[] {
  const found: { readonly concern: Concern; readonly waiting: number }[] = []
  let scanned = 0
  for (const key of mirror.contended) {
    if (++scanned > SCANNED_MAX) break
    const row = mirror.keys.get(key)
    // Those who wait for a term or a turn may do so for as long as they like.
    if (row === undefined || key.startsWith('election/')) continue
    const waiting = row.count - row.held
    const first = row.claims[row.held]
    const waited = first === undefined ? 0 : now - first.claimedAt
    if (waiting < LONG_LINE && waited < LONG_WAIT_MS) continue
    const detail = `${waiting} ${waiting === 1 ? 'waits' : 'wait'}, the first for ${spoken(waited)}, behind ${row.claims[0]?.holder ?? 'nobody'}.`
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
  return found.slice(0, LINES_SHOWN).map(({ concern }) => concern)
}

function flapping({ recent, now }: Situation): Concern[] {
  return recent.flapping(now).map(({ holder, times, last }) => ({
    id: `flapping/${holder}`,
    kind: 'flapping' as const,
    level: 'warn' as const,
    title: `${holder} flaps`,
    detail: `Its leases ran out ${times} times in ${spoken(FLAPS_WITHIN_MS)}, last ${spoken(now - last)} ago.`,
    href: `#/leases?holder=${encodeURIComponent(holder)}`,
  }))
}
