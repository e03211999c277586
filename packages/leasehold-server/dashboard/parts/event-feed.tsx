import type { Event } from 'leasehold/port'
import { useMemo, useState } from 'preact/hooks'
import { timeOfDay } from '../model/format.ts'
import { KINDS, type Kind, kindOf } from '../model/recent-events.ts'
import { Mark, ShortName, useDemoFilter } from './badges.tsx'
import { Columns } from './columns.tsx'
import { useLive } from './context.ts'
import { go, hrefTo, useQuery } from './route.ts'
import { useNarrow, WindowList } from './window-list.tsx'

const ROW_HEIGHT = 30
/** On a narrow page, an event takes two lines. */
const NARROW_HEIGHT = 52
const COLUMNS = [
  ['time', 'Time'],
  ['mark-head', 'Event'],
  ['key', 'Key'],
  ['holder', 'Holder'],
  ['token', 'Token'],
] as const
const ALL = { kinds: new Set(KINDS), search: '' }

/** The events as they happen, the latest first. It can be paused. */
export function EventFeed() {
  const { recent } = useLive()
  const without = useDemoFilter()
  const query = useQuery('overview')
  const search = query.get('search')
  const wanted = query.get('events')
  const kinds: ReadonlySet<Kind> = useMemo(() => {
    const named = KINDS.filter((it) => wanted.split(',').includes(it))
    return new Set(wanted === '' ? KINDS.filter((it) => it !== 'updated') : named)
  }, [wanted])
  const [held, hold] = useState<readonly Event[] | undefined>(undefined)
  const found = useMemo(
    () => recent.list({ kinds, search, without }),
    [recent, recent.version, kinds, search, without],
  )
  const shown = useMemo(
    () => held?.filter((event) => isWanted(event, kinds, search)) ?? found,
    [held, found, kinds, search],
  )
  const toggle = (kind: Kind) => {
    const next = new Set(kinds)
    if (!next.delete(kind)) next.add(kind)
    query.set({ events: [...next].join(',') || 'none' })
  }
  return (
    <section class="panel feed" aria-labelledby="feed-title">
      <div class="title-line">
        <h2 id="feed-title">Events</h2>
        <button
          type="button"
          class="chip"
          aria-pressed={held !== undefined}
          onClick={() => hold(held === undefined ? recent.list(ALL) : undefined)}
        >
          {held === undefined ? 'Pause' : 'Paused'}
        </button>
      </div>
      <div class="filters">
        <KindChips kinds={kinds} toggle={toggle} />
        <input
          type="search"
          aria-label="Filter events by key or holder"
          placeholder="key or holder"
          value={search}
          onInput={(event) => query.set({ search: event.currentTarget.value })}
        />
      </div>
      <EventList events={shown} />
    </section>
  )
}

function EventList({ events }: { readonly events: readonly Event[] }) {
  const isNarrow = useNarrow()
  if (events.length === 0) return <p class="quiet">No such events yet.</p>
  return (
    <>
      <Columns of="event" names={COLUMNS} />
      <WindowList
        label="Events, the latest first"
        count={events.length}
        rowHeight={isNarrow ? NARROW_HEIGHT : ROW_HEIGHT}
        row={(index) => <EventRow event={events[index]!} />}
        choose={(index) => go(hrefTo('keys', events[index]!.key))}
        itemAt={(index) => events[index]}
        placeOf={(event: Event) => placeIn(events, event)}
      />
    </>
  )
}

/** Applies the filter to the paused events. */
function isWanted(event: Event, kinds: ReadonlySet<Kind>, search: string): boolean {
  const wanted = search.trim().toLowerCase()
  const { key, holder } = event
  return kinds.has(kindOf(event)) && `${key}\n${holder}`.toLowerCase().includes(wanted)
}

function placeIn(events: readonly Event[], event: Event): number | undefined {
  const at = events.indexOf(event)
  return at < 0 ? undefined : at
}

interface KindChipsProps {
  readonly kinds: ReadonlySet<Kind>
  toggle(kind: Kind): void
}

function KindChips({ kinds, toggle }: KindChipsProps) {
  return KINDS.map((kind) => (
    <button
      key={kind}
      type="button"
      class="chip"
      aria-pressed={kinds.has(kind)}
      onClick={() => toggle(kind)}
    >
      {kind}
    </button>
  ))
}

function EventRow({ event }: { readonly event: Event }) {
  const { at, key, holder, token, end } = event
  return (
    <div class="event">
      <time class="time">{timeOfDay(at)}</time>
      <Mark word={kindOf(event)} />
      <ShortName name={key} />
      <span class="holder">{holder}</span>
      {end?.why === undefined ? (
        <span class="token" title={`fencing token ${token}`}>
          #{token}
        </span>
      ) : (
        <span class="why" title={end.why}>
          {end.why}
        </span>
      )}
    </div>
  )
}
