import { useMemo, useState } from 'preact/hooks'
import { drainInstance, returnInstance } from '../model/admin-actions.ts'
import { formatNumber, formatSpan, plural, timeOfDay } from '../model/format.ts'
import { placed } from '../model/recipes/elections.ts'
import {
  type FoundService,
  findServices,
  type Order,
  type ServiceFilter,
  type ShownStatus,
  STATUSES,
  shownStatus,
  tagsOf,
} from '../model/recipes/find-services.ts'
import {
  type InstanceView,
  isHealthy,
  type ServiceView,
  servicesOf,
} from '../model/recipes/services.ts'
import { statusTimeline } from '../model/recipes/status-timeline.ts'
import { ActionButton } from '../parts/action-dialog.tsx'
import { DemoBadge, DrainBar, HolderLink, Mark, None, toneOf } from '../parts/badges.tsx'
import { Legend } from '../parts/columns.tsx'
import { useLive } from '../parts/context.ts'
import { hrefTo, type Route, useQuery } from '../parts/route.ts'
import { Search } from '../parts/search.tsx'

/** The longest period that the timeline of an instance shows. */
const STRIP_MS = 10 * 60_000
const STRIP_MIN_MS = 60_000
const INSTANCES_SHOWN = 200
const ORDERS: readonly Order[] = ['name', 'unhealthy', 'size']

/** The services are open at first if they have at most this many instances in all. */
const OPEN_AT_FIRST = 60
/** The shortest interval between two searches while instances change. */
const SEARCH_MS = 250

export function Services({ route }: { readonly route: Route }) {
  const { mirror, now } = useLive()
  const moment = Math.floor(now() / SEARCH_MS)
  const services = useMemo(() => servicesOf(mirror), [mirror, moment])
  const [filter, setFilter] = useFilter()
  const [turned, setTurned] = useState<ReadonlySet<string>>(new Set())
  const found = useMemo(() => findServices(services, filter), [services, filter])
  const shown = route.at === undefined ? found : found.filter((it) => it.service.name === route.at)
  const instances = shown.reduce((sum, it) => sum + it.instances.length, 0)
  const isFew = instances <= OPEN_AT_FIRST || route.at !== undefined
  const turn = (name: string) => {
    const next = new Set(turned)
    if (!next.delete(name)) next.add(name)
    setTurned(next)
  }
  return (
    <div class="stack">
      <h1>
        Services <span class="count">{services.length}</span>
        {route.at !== undefined && (
          <a class="back shown" href="#/services">
            All services
          </a>
        )}
      </h1>
      {services.length === 0 ? (
        <NoServices />
      ) : (
        <>
          <Filters {...{ services, filter, setFilter, shown: shown.length, instances }} />
          <StripLegend />
          {shown.map((it) => (
            <Service
              key={it.service.name}
              found={it}
              isOpen={isFew !== turned.has(it.service.name)}
              turn={turn}
            />
          ))}
        </>
      )}
    </div>
  )
}

/** In the address, except what is the default. */
function useFilter(): readonly [ServiceFilter, (to: ServiceFilter) => void] {
  const query = useQuery('services')
  const [text, status, tag, order] = ['search', 'status', 'tag', 'order'].map(query.get)
  const filter = useMemo((): ServiceFilter => {
    const statuses = new Set(STATUSES.filter((it) => status!.split(',').includes(it)))
    return { text: text!, statuses, tag: tag!, order: ORDERS.find((it) => it === order) ?? 'name' }
  }, [text, status, tag, order])
  const setFilter = ({ text, statuses, tag, order }: ServiceFilter) => {
    const status = [...statuses].join(',')
    query.set({ search: text, status, tag, order: order === 'name' ? '' : order })
  }
  return [filter, setFilter]
}

function NoServices() {
  return (
    <None title="No instance is registered">
      <p>
        An instance registers with a lease and is found as long as it renews the lease:{' '}
        <code>leasehold.registry.register('embedder', {'{ address }'})</code>.
      </p>
    </None>
  )
}

function StripLegend() {
  return (
    <Legend
      of="strips"
      items={[
        ['ok', 'passing'],
        ['warn', 'warning, lapsed or drained'],
        ['bad', 'critical'],
        ['gone', 'not registered'],
        ['unknown', 'not known'],
      ]}
    />
  )
}

interface FiltersProps {
  readonly services: readonly ServiceView[]
  readonly filter: ServiceFilter
  setFilter(to: ServiceFilter): void
  /** The number of services and instances that match. */
  readonly shown: number
  readonly instances: number
}

function Filters({ services, filter, setFilter, shown, instances }: FiltersProps) {
  const { text, statuses, tag, order } = filter
  const tags = useMemo(() => tagsOf(services), [services])
  const toggle = (status: ShownStatus) => {
    const next = new Set(statuses)
    if (!next.delete(status)) next.add(status)
    setFilter({ ...filter, statuses: next })
  }
  return (
    <div class="filters">
      <Search
        what="services and instances"
        text={text}
        change={(to) => setFilter({ ...filter, text: to })}
      />
      {STATUSES.map((status) => (
        <button
          key={status}
          type="button"
          class="chip"
          aria-pressed={statuses.has(status)}
          onClick={() => toggle(status)}
        >
          {status}
        </button>
      ))}
      <select
        aria-label="Tag or capability"
        value={tag}
        onChange={(event) => setFilter({ ...filter, tag: event.currentTarget.value })}
      >
        <option value="">every tag</option>
        {tags.map((it) => (
          <option key={it} value={it}>
            {it}
          </option>
        ))}
      </select>
      <select
        aria-label="Order"
        value={order}
        onChange={(event) => setFilter({ ...filter, order: event.currentTarget.value as Order })}
      >
        <option value="name">by name</option>
        <option value="unhealthy">most unhealthy first</option>
        <option value="size">largest first</option>
      </select>
      <span class="quiet" role="status">
        {plural(instances, 'instance')} of {plural(shown, 'service')}
      </span>
    </div>
  )
}

interface ServiceProps {
  readonly found: FoundService
  readonly isOpen: boolean
  turn(name: string): void
}

function Service({ found, isOpen, turn }: ServiceProps) {
  const { service, instances } = found
  const { name, healthy } = service
  const all = service.instances.length
  const tone = healthy === all ? 'ok' : healthy === 0 ? 'bad' : 'warn'
  return (
    <section class="panel service" aria-labelledby={`service-${name}`}>
      <h2 id={`service-${name}`}>
        <button
          type="button"
          class="bare turn"
          aria-expanded={isOpen}
          aria-label={`${isOpen ? 'Close' : 'Open'} ${name}`}
          onClick={() => turn(name)}
        >
          <span class={`twist ${isOpen ? 'open' : ''}`} />
        </button>
        <a href={hrefTo('services', name)}>{name}</a> <DemoBadge name={name} />
        <span class={`mark ${tone}`}>
          {healthy} of {all} healthy
        </span>
        {instances.length < all && <span class="quiet">{instances.length} match</span>}
      </h2>
      {isOpen && <Instances found={found} />}
    </section>
  )
}

function Instances({ found: { service, instances } }: { readonly found: FoundService }) {
  const { history, now } = useLive()
  const oldest = Math.min(
    ...instances.map(({ id, since }) => history.of(`${service.name}/${id}`)[0]?.at ?? since),
  )
  const begin = Math.max(now() - STRIP_MS, Math.min(oldest, now() - STRIP_MIN_MS))
  return (
    <>
      <p class="quiet">checks from {timeOfDay(begin)} until now</p>
      <ul class="instances">
        {instances.slice(0, INSTANCES_SHOWN).map((instance) => (
          <InstanceRow key={instance.id} instance={instance} service={service} begin={begin} />
        ))}
      </ul>
      {instances.length > INSTANCES_SHOWN && (
        <p class="quiet">
          and {instances.length - INSTANCES_SHOWN} more: search for them, or filter by status
        </p>
      )}
    </>
  )
}

interface InstanceRowProps {
  readonly instance: InstanceView
  readonly service: ServiceView
}

function InstanceRow({ instance, service, begin }: InstanceRowProps & { readonly begin: number }) {
  const { visibleLeases, now } = useLive()
  const { id, note, zone, address, capabilities, tags, load, holder, lease } = instance
  return (
    <li class="instance">
      <div class="instance-head">
        <b>{id}</b>
        <Mark word={shownStatus(instance)} />
        <span class="quiet">{note}</span>
        <InstanceActions instance={instance} service={service} />
      </div>
      <div class="instance-facts">
        {address !== undefined && <span>{address}</span>}
        {zone !== undefined && <span>zone {zone}</span>}
        {load !== undefined && <span>load {formatNumber(load)}</span>}
        {instance.node !== undefined && <span>on {instance.node}</span>}
        {instance.check !== undefined && <span>checked by {checkText(instance.check)}</span>}
        {[...new Set([...capabilities, ...tags])].map((word) => (
          <span key={word} class="badge">
            {word}
          </span>
        ))}
        <HolderLink holder={holder} lease={lease} />
      </div>
      <div class="instance-life">
        <Strip instance={instance} begin={begin} />
        <DrainBar lease={visibleLeases.show(lease)} now={now()} />
      </div>
    </li>
  )
}

function checkText({ url, ttl, every }: NonNullable<InstanceView['check']>): string {
  return url === undefined
    ? `its own reports, every ${formatSpan(ttl ?? 0)}`
    : `${url}, every ${formatSpan(every)}`
}

function InstanceActions({ instance, service }: InstanceRowProps) {
  const live = useLive()
  const { id, key, drainedBy } = instance
  const health = `health/${service.name}/${id}`
  if (drainedBy !== undefined) {
    if (!live.may('admin', health)) return null
    return <ActionButton text="Return…" action={() => returnInstance(service.name, id)} />
  }
  if (!live.may('claim', health) || !live.may('renew', key) || !live.may('admin', health))
    return null
  const left = service.instances.filter((it) => it.id !== id && isHealthy(it)).length
  return <ActionButton text="Drain…" action={() => drainInstance(service.name, id, left)} />
}

interface StripProps {
  readonly begin: number
  readonly instance: InstanceView
}

/**
 * The status of an instance over the last minutes. Unknown periods, before the page was opened, are
 * hatched.
 */
function Strip({ instance, begin }: StripProps) {
  const { history, mirror, now } = useLive()
  const { service, id, status, drainedBy } = instance
  const [opened] = useState(now)
  // A drain is never updated, so it is as old as its claim. A check's result may be newer.
  const drain = mirror.keys.get(`health/${service}/${id}`)?.claims.at(-1)
  const seen = drainedBy === undefined ? opened : (drain?.claimedAt ?? opened)
  const pieces = statusTimeline(history.of(`${service}/${id}`), instance, seen, now())
  const unknown = placed({ from: begin, to: pieces[0]?.from ?? begin }, begin, now())
  return (
    <div
      class="strip"
      role="img"
      aria-label={`Its checks: ${plural(pieces.length, 'change')}, now ${status}`}
    >
      {unknown.width > 0 && (
        <span
          class="unknown"
          style={{ left: 0, width: `${100 * unknown.width}%` }}
          title="Unknown"
        />
      )}
      {pieces
        .filter(({ to }) => to > begin)
        .map((piece) => {
          const { left, width } = placed(piece, begin, now())
          const word = drainedBy !== undefined && piece === pieces.at(-1) ? 'drained' : piece.status
          return (
            <span
              key={piece.from}
              class={`${toneOf(word)} ${word}`}
              style={{ left: `${100 * left}%`, width: `${100 * width}%` }}
              title={`${timeOfDay(piece.from)} ${word}${piece.note === undefined ? '' : `: ${piece.note}`}`}
            />
          )
        })}
    </div>
  )
}
