import { useMemo, useState } from 'preact/hooks'
import { drainInstance, returnInstance } from '../model/admin-actions.ts'
import { placed } from '../model/elections.ts'
import { formatNumber, formatSpan, plural, timeOfDay } from '../model/format.ts'
import { type InstanceView, isHealthy, type ServiceView, servicesOf } from '../model/services.ts'
import { statusTimeline } from '../model/status-timeline.ts'
import { ActionButton } from '../parts/action-dialog.tsx'
import { DemoBadge, DrainBar, HolderLink, Mark, None, toneOf } from '../parts/badges.tsx'
import { useLive } from '../parts/context.ts'
import type { Route } from '../parts/route.ts'

/** The longest period that the timeline of an instance shows. */
const STRIP_MS = 10 * 60_000
const STRIP_MIN_MS = 60_000
const INSTANCES_SHOWN = 200

export function Services({ route }: { readonly route: Route }) {
  const { mirror } = useLive()
  const version = mirror.versionOf('services') + mirror.versionOf('health')
  const services = useMemo(() => servicesOf(mirror), [mirror, version])
  const shown = route.at === undefined ? services : services.filter(({ name }) => name === route.at)
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
      {services.length === 0 && (
        <None title="No instance is registered">
          <p>
            An instance registers with a lease and is found as long as it renews the lease:{' '}
            <code>leasehold.registry.register('embedder', {'{ address }'})</code>.
          </p>
        </None>
      )}
      {shown.map((service) => (
        <Service key={service.name} service={service} />
      ))}
    </div>
  )
}

function Service({ service }: { readonly service: ServiceView }) {
  const { name, instances, healthy } = service
  const { history, now } = useLive()
  const oldest = Math.min(
    ...instances.map(({ id, since }) => history.of(`${name}/${id}`)[0]?.at ?? since),
  )
  const begin = Math.max(now() - STRIP_MS, Math.min(oldest, now() - STRIP_MIN_MS))
  const tone = healthy === instances.length ? 'ok' : healthy === 0 ? 'bad' : 'warn'
  return (
    <section class="panel" aria-labelledby={`service-${name}`}>
      <h2 id={`service-${name}`}>
        {name} <DemoBadge name={name} />
        <span class={`mark ${tone}`}>
          {healthy} of {instances.length} healthy
        </span>
        <span class="quiet">checks since {timeOfDay(begin)}</span>
      </h2>
      <ul class="instances">
        {instances.slice(0, INSTANCES_SHOWN).map((instance) => (
          <InstanceRow key={instance.id} instance={instance} service={service} begin={begin} />
        ))}
      </ul>
      {instances.length > INSTANCES_SHOWN && (
        <p class="quiet">and {instances.length - INSTANCES_SHOWN} more in the view Keys</p>
      )}
    </section>
  )
}

interface InstanceRowProps {
  readonly instance: InstanceView
  readonly service: ServiceView
}

function InstanceRow({ instance, service, begin }: InstanceRowProps & { readonly begin: number }) {
  const { visibleLeases, now } = useLive()
  const { id, status, note, zone, address, capabilities, load, drainedBy, holder, lease } = instance
  return (
    <li class="instance">
      <div class="instance-head">
        <b>{id}</b>
        <Mark word={drainedBy === undefined ? status : 'drained'} />
        <span class="quiet">{note}</span>
        <InstanceActions instance={instance} service={service} />
      </div>
      <div class="instance-facts">
        {address !== undefined && <span>{address}</span>}
        {zone !== undefined && <span>zone {zone}</span>}
        {load !== undefined && <span>load {formatNumber(load)}</span>}
        {instance.node !== undefined && <span>on {instance.node}</span>}
        {instance.check !== undefined && <span>checked by {checkText(instance.check)}</span>}
        {capabilities.map((word) => (
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
