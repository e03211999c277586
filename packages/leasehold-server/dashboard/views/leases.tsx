import { useMemo, useState } from 'preact/hooks'
import { count, plural } from '../model/format.ts'
import { Mirror } from '../model/mirror.ts'
import { DrainBar, None, ShortName } from '../parts/badges.tsx'
import { Columns, DrainLegend } from '../parts/columns.tsx'
import { useLive } from '../parts/context.ts'
import { go, hrefTo, type Route, useQuery } from '../parts/route.ts'
import { Search } from '../parts/search.tsx'
import { WindowList } from '../parts/window-list.tsx'
import { HolderDetail } from './holder-detail.tsx'
import { LeaseDetail } from './lease-detail.tsx'

const ROW_HEIGHT = 34
const SEARCH_MS = 400
const COLUMNS = [
  ['holder', 'Holder'],
  ['keys', 'Keys'],
  ['drain', 'Time left'],
  ['lease-id', 'Lease'],
] as const

export function Leases({ route }: { readonly route: Route }) {
  const { mirror, now, feed } = useLive()
  const query = useQuery('leases')
  const [text, write] = useState(query.get('search') || query.get('holder'))
  const setText = (search: string) => {
    write(search)
    query.set({ search })
  }
  const isSearch = text.trim() !== ''
  const moment = isSearch ? Math.floor(now() / SEARCH_MS) : 0
  const all = mirror.leaseIds()
  const found = useMemo(() => {
    const wanted = text.trim().toLowerCase()
    const hasKey = (entry: string) =>
      mirror.leases.get(Mirror.idIn(entry))?.keys.some((key) => key.toLowerCase().includes(wanted))
    return all.filter((entry) => entry.toLowerCase().includes(wanted) || hasKey(entry))
  }, [mirror, text, moment])
  const entries = isSearch ? found : all
  const known = feed.state?.leases?.count
  const holder = route.at === undefined ? route.query.get('holder') : null
  return (
    <>
      <h1 class="unseen">Leases</h1>
      <div class={`split ${route.at === undefined && holder === null ? '' : 'has-detail'}`}>
        <section class="panel list" aria-labelledby="leases-title">
          <h2 id="leases-title" class="title">
            Leases <span class="count">{count(known ?? mirror.leases.size)}</span>
            <span class="quiet"> of {plural(mirror.holders.size, 'holder')}</span>
          </h2>
          <div class="filters">
            <Search what="holders, keys and leases" text={text} change={setText} />
          </div>
          {entries.length === 0 ? (
            <None title={isSearch ? 'No matching holder, key or lease' : 'No leases'}>
              <p>A lease is time granted to a holder. It expires unless it is renewed.</p>
            </None>
          ) : (
            <>
              <Columns of="tree-line lease-line" names={COLUMNS} />
              <LeaseList entries={entries} chosen={route.at} />
              <DrainLegend />
            </>
          )}
        </section>
        {holder === null ? (
          <LeaseDetail key={route.at} id={route.at} />
        ) : (
          <HolderDetail key={holder} holder={holder} />
        )}
      </div>
    </>
  )
}

interface LeaseListProps {
  /** Sorted, as in the mirror. */
  readonly entries: readonly string[]
  readonly chosen: string | undefined
}

function LeaseList({ entries, chosen }: LeaseListProps) {
  const { mirror } = useLive()
  const idAt = (index: number) => Mirror.idIn(entries[index]!)
  return (
    <WindowList
      label="Leases by holder"
      count={entries.length}
      rowHeight={ROW_HEIGHT}
      chosen={chosen === undefined ? undefined : indexOf(entries, mirror, chosen)}
      row={(index) => <LeaseLine id={idAt(index)} />}
      choose={(index) => go(hrefTo('leases', idAt(index)))}
      itemAt={(index) => (index < entries.length ? idAt(index) : undefined)}
      placeOf={(id: string) => indexOf(entries, mirror, id)}
    />
  )
}

/** The index of a lease in the sorted list. */
function indexOf(entries: readonly string[], mirror: Mirror, id: string): number | undefined {
  const holder = mirror.leases.get(id)?.holder
  if (holder === undefined) return undefined
  const wanted = Mirror.entryOf(holder, id)
  let low = 0
  let high = entries.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (entries[middle]! < wanted) low = middle + 1
    else high = middle
  }
  return entries[low] === wanted ? low : undefined
}

function LeaseLine({ id }: { readonly id: string }) {
  const { mirror, visibleLeases, now } = useLive()
  const row = mirror.leases.get(id)
  const lease = visibleLeases.show(id)
  const [first, ...others] = row?.keys ?? []
  const children = lease?.children ?? 0
  return (
    <div class="tree-line lease-line">
      <span class="holder">{row?.holder}</span>
      <span class="keys">
        {first === undefined ? 'no claims' : <ShortName name={first} />}
        {others.length > 0 && <span class="more"> +{count(others.length)}</span>}
        {children > 0 && <span class="more under"> {plural(children, 'lease')} under it</span>}
      </span>
      <DrainBar lease={lease} now={now()} />
      <span class="lease-id" title={`lease ${id}`}>
        {id}
      </span>
    </div>
  )
}
