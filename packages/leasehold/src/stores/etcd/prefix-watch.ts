import type { End, Event, Key, Observer, Revision } from '../../port/index.ts'
import type { Context } from './context.ts'
import { witness } from './history.ts'
import { type LineEnd, readLineEnd, type StoredClaim, storedClaim } from './layout.ts'
import type { KeyValue, WatchEvent } from './messages.ts'
import type { WatchStream } from './watch-stream.ts'

const EXPIRED: End = { reason: 'expired' }

/** Watches the keys of a prefix. Answers with what ends it. */
export function watchPrefix(
  context: Context,
  stream: WatchStream,
  target: { readonly prefix: string; readonly from?: Revision | undefined },
  observer: Observer,
): () => void {
  const { layout } = context
  const from = target.from === undefined ? 0 : target.from + 1
  const range = { ...layout.under(target.prefix), deletesOnly: false, from }
  const stop = stream.watch(range, {
    watching: (revision) => observer({ type: 'watching', revision }),
    events: (heard) => {
      const oldest = heard[0]!.kv.changed
      if (heard.some(({ deleted, before }) => deleted && before === undefined)) {
        // etcd has forgotten what was deleted: it was compacted while this came.
        stop()
        return observer({ type: 'compacted', oldest: heard.at(-1)!.kv.changed })
      }
      const events = byRevision(heard).flatMap((group) => eventsOf(context, group))
      const revision = events.at(-1)?.revision
      if (revision !== undefined && revision >= oldest)
        observer({ type: 'events', revision, events })
    },
    compacted: (revision) => observer({ type: 'compacted', oldest: revision }),
    failed: (error) => observer({ type: 'interrupted', error }),
  })
  return stop
}

function byRevision(heard: readonly WatchEvent[]): WatchEvent[][] {
  const groups: WatchEvent[][] = []
  for (const event of heard) {
    const group = groups.at(-1)
    if (group?.[0]?.kv.changed === event.kv.changed) group?.push(event)
    else groups.push([event])
  }
  return groups
}

/** The events of one revision. What was deleted and has no note of how it ended has expired. */
function eventsOf(context: Context, group: readonly WatchEvent[]): Event[] {
  const { layout, clock } = context
  const notes = new Map<Key, LineEnd>()
  const expired = new Map<Key, StoredClaim[]>()
  const events: Event[] = []
  for (const { deleted, kv } of group) {
    const { key, claim } = layout.parse(kv.key)
    if (claim === undefined && !deleted) notes.set(key, readLineEnd(kv.value))
  }
  for (const { deleted, kv, before } of group) {
    if (!layout.isClaim(kv.key)) continue
    const claim = storedClaim(layout, deleted ? before! : kv)
    const revision = kv.changed
    if (!deleted) {
      events.push(eventOf(kv.created === revision ? 'claimed' : 'updated', claim, kv, claim.at))
      continue
    }
    const note = notes.get(claim.key)
    if (note === undefined) expired.set(claim.key, [...(expired.get(claim.key) ?? []), claim])
    events.push(
      eventOf(
        'removed',
        claim,
        kv,
        note?.at ?? clock.now(),
        note === undefined ? EXPIRED : note.end,
      ),
    )
  }
  for (const [key, claims] of expired) {
    witness(context, key, claims, group[0]!.kv.changed).catch(() => {})
  }
  return events
}

function eventOf(
  type: Event['type'],
  { key, token, leaseId, holder, mode, limit, value }: StoredClaim,
  kv: KeyValue,
  at: number,
  end?: End,
): Event {
  const claim = { key, token, lease: leaseId, holder, mode, limit, value }
  return { revision: kv.changed, type, ...claim, end, at }
}
