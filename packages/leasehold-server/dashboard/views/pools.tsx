import { useMemo } from 'preact/hooks'
import { count, formatSpan, fullTime } from '../model/format.ts'
import type { ClaimRow, Mirror } from '../model/mirror.ts'
import {
  type KindView,
  learntOf,
  type PoolView,
  poolNames,
  poolOf,
} from '../model/recipes/pools.ts'
import { keysOf } from '../model/recipes/recipe-functions.ts'
import { DemoBadge, HolderLink, None } from '../parts/badges.tsx'
import { useLive } from '../parts/context.ts'
import { hrefTo, type Route, useQuery } from '../parts/route.ts'
import { Search } from '../parts/search.tsx'

/** The number of tenant colours. */
const COLOURS = 8
const LINE_SHOWN = 50
/** The shortest interval between two computations of a pool. */
const EXPECT_MS = 500

export function Pools({ route }: { readonly route: Route }) {
  const { mirror } = useLive()
  const version = mirror.versionOf('pool')
  const names = useMemo(() => poolNames(mirror), [mirror, version])
  const query = useQuery('pools')
  const text = query.get('search')
  const wanted = text.trim().toLowerCase()
  const shown = names.filter((name) =>
    route.at === undefined ? name.toLowerCase().includes(wanted) : name === route.at,
  )
  return (
    <div class="stack">
      <h1>
        Pools <span class="count">{names.length}</span>
      </h1>
      {names.length > 0 && route.at === undefined && (
        <div class="filters">
          <Search what="pools" text={text} change={(search) => query.set({ search })} />
        </div>
      )}
      {names.length === 0 && (
        <None title="No pool is defined">
          <p>
            A pool shares scarce resources fairly among tenants:{' '}
            <code>
              leasehold.pool('gpu', {'{ resources }'}).take({'{ tenant }'})
            </code>
            .
          </p>
        </None>
      )}
      {shown.map((name) => (
        <Pool key={name} name={name} />
      ))}
      <Learnt />
    </div>
  )
}

function Pool({ name }: { readonly name: string }) {
  const { mirror, visibleLeases, now } = useLive()
  const moment = Math.floor(now() / EXPECT_MS)
  const found = useMemo(() => {
    const view = poolOf(mirror, name, now(), (lease) => visibleLeases.show(lease)?.until)
    return view && { pool: view, claims: claimsOf(mirror, view) }
  }, [mirror, name, moment])
  if (found === undefined) return null
  const { pool, claims } = found
  const free = pool.resources.filter((it) => it.free === it.shares).length
  return (
    <section class="panel" aria-labelledby={`pool-${name}`}>
      <h2 id={`pool-${name}`}>
        {name} <DemoBadge name={name} />
        <span class="quiet">
          {free} of {pool.resources.length} free
        </span>
      </h2>
      <Resources pool={pool} claims={claims} />
      <Tenants pool={pool} />
      <Queue pool={pool} claims={claims} />
      <Kinds kinds={pool.kinds} />
    </section>
  )
}

function colourOf(pool: PoolView, tenant: string): string {
  const at = pool.tenants.findIndex((it) => it.tenant === tenant)
  return `tenant-${Math.max(at, 0) % COLOURS}`
}

type ResourceView = PoolView['resources'][number]

/** The claims on a resource. The resource is one key, or each of its shares is a key. */
function claimsOn(mirror: Mirror, pool: string, resource: string): ClaimRow[] {
  const node = mirror.internal.find(`${keysOf(pool).prefix}r/${resource}`)
  const keys = [node, ...(node?.children?.values() ?? [])].filter((it) => it?.isKey)
  return keys.flatMap((it) => mirror.keys.get(it!.key)?.claims[0] ?? [])
}

/** The claims at the moment when the pool was computed. */
interface Claims {
  readonly on: ReadonlyMap<string, readonly ClaimRow[]>
  /** The leases of the waiters, by token. */
  readonly waiters: ReadonlyMap<number, string>
}

function claimsOf(mirror: Mirror, { name: pool, resources }: PoolView): Claims {
  const waiters = mirror.keys.get(keysOf(pool).queue)?.claims ?? []
  return {
    on: new Map(resources.map(({ name }) => [name, claimsOn(mirror, pool, name)])),
    waiters: new Map(waiters.map(({ token, lease }) => [token, lease])),
  }
}

interface PoolProps {
  readonly pool: PoolView
  readonly claims: Claims
}

function Resources({ pool, claims }: PoolProps) {
  return (
    <ul class="resources">
      {pool.resources.map((resource) => (
        <Resource
          {...{ key: resource.name, pool, resource }}
          claims={claims.on.get(resource.name) ?? []}
        />
      ))}
    </ul>
  )
}

interface ResourceProps {
  readonly pool: PoolView
  readonly resource: ResourceView
  readonly claims: readonly ClaimRow[]
}

function Resource({ pool, resource, claims }: ResourceProps) {
  const { name, attributes, shares, free, permits } = resource
  const [first] = claims
  return (
    <li class={`resource ${permits[0] === undefined ? 'free' : colourOf(pool, permits[0].tenant)}`}>
      <b>{first === undefined ? name : <a href={hrefTo('keys', first.key)}>{name}</a>}</b>
      <span class="quiet">
        {Object.entries(attributes)
          .map(([word, value]) => `${word} ${value}`)
          .join(', ')}
      </span>
      {permits.length === 0 && <span>free</span>}
      {permits.map((permit) => (
        <Permit
          {...{ key: permit.token, permit, shares }}
          lease={claims.find(({ token }) => token === permit.token)?.lease}
        />
      ))}
      {permits.length > 0 && free > 0 && <span>{free} shares free</span>}
    </li>
  )
}

interface PermitProps {
  readonly permit: ResourceView['permits'][number]
  readonly shares: number
  readonly lease: string | undefined
}

function Permit({ permit, shares, lease }: PermitProps) {
  const { now } = useLive()
  const { tenant, kind, since, holder, noticed } = permit
  return (
    <>
      <span title={`since ${fullTime(since)}`}>
        {tenant}: {kind}
        {shares > 1 && ` (${permit.shares} of ${shares})`}, {formatSpan(now() - since)}
        {noticed && <span class="badge">asked back</span>}
      </span>
      <span class="by">
        by <Who holder={holder} lease={lease} />
      </span>
    </>
  )
}

/** A holder, with a link to its lease if that is known. */
function Who({ holder, lease }: { readonly holder: string; readonly lease: string | undefined }) {
  if (lease === undefined) return <span class="holder">{holder}</span>
  return <HolderLink holder={holder} lease={lease} />
}

function Tenants({ pool }: { readonly pool: PoolView }) {
  if (pool.tenants.length === 0) return null
  return (
    <div class="table-box">
      <table>
        <caption class="unseen">Tenants of {pool.name}</caption>
        <thead>
          <tr>
            <th scope="col">Tenant</th>
            <th scope="col">Holds</th>
            <th scope="col">Guaranteed</th>
            <th scope="col">Waiting</th>
            <th scope="col">Used lately</th>
          </tr>
        </thead>
        <tbody>
          {pool.tenants.map(({ tenant, holds, guaranteed, waiting, used }) => (
            <tr key={tenant}>
              <th scope="row">
                <span class={`swatch ${colourOf(pool, tenant)}`} /> {tenant}
              </th>
              <td>{Number(holds.toFixed(2))}</td>
              <td>{Number(guaranteed.toFixed(1))}</td>
              <td>{waiting}</td>
              <td>{Math.round(100 * used)} %</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Queue({ pool, claims }: PoolProps) {
  const { now } = useLive()
  const { queue } = pool
  return (
    <>
      <h3>
        Queue <span class="count">{count(queue.length)}</span>
      </h3>
      {queue.length === 0 && <p class="quiet">Nobody waits.</p>}
      {queue.length > 0 && (
        <table class="rows terms">
          <thead>
            <tr>
              <th scope="col">Waiter</th>
              <th scope="col">Tenant, kind</th>
              <th scope="col">Waits for</th>
              <th scope="col">Expected</th>
            </tr>
          </thead>
          <tbody>
            {queue
              .slice(0, LINE_SHOWN)
              .map(({ token, holder, tenant, kind, count: wanted, since, forecast }) => (
                <tr key={token}>
                  <td>
                    <Who holder={holder} lease={claims.waiters.get(token)} />
                  </td>
                  <td>
                    <span class={`swatch ${colourOf(pool, tenant)}`} /> {tenant}, {kind}
                    {wanted > 1 && ` × ${wanted}`}
                  </td>
                  <td>{formatSpan(now() - since)}</td>
                  <td class="expected">
                    {forecast === undefined
                      ? 'no estimate'
                      : `in about ${formatSpan(forecast.wait)}${forecast.basis === 'booked' ? ', as booked' : ''}`}
                  </td>
                </tr>
              ))}
          </tbody>
        </table>
      )}
    </>
  )
}

function Kinds({ kinds }: { readonly kinds: readonly KindView[] }) {
  if (kinds.length === 0) return null
  return (
    <>
      <h3>Learnt hold times</h3>
      <ul class="kinds">
        {kinds.map(({ kind, bars, seen, usual }) => {
          const most = Math.max(...bars.map((bar) => bar.count))
          return (
            <li key={kind}>
              <b>{kind}</b>
              <span class="quiet">
                {usual === undefined ? '' : `usually ${formatSpan(usual)}, `}
                {seen} seen
              </span>
              <span
                class="bars"
                role="img"
                aria-label={`Hold times of ${kind}: usually ${formatSpan(usual ?? 0)}`}
              >
                {bars.map((bar) => (
                  <i
                    key={bar.ms}
                    title={`about ${formatSpan(bar.ms)}: ${Math.round(bar.count)}`}
                    style={{ height: `${Math.max(4, (100 * bar.count) / most)}%` }}
                  />
                ))}
              </span>
              <span class="bars-axis quiet" aria-hidden="true">
                <span>{formatSpan(bars[0]?.ms ?? 0)}</span>
                <span>{formatSpan(bars.at(-1)?.ms ?? 0)}</span>
              </span>
            </li>
          )
        })}
      </ul>
    </>
  )
}

/** The adaptive ttls, each with its reason. */
function Learnt() {
  const { mirror, store } = useLive()
  const version = mirror.versionOf('adaptive')
  const ttl = store?.guarantees.ttl
  const learnt = useMemo(
    () => (ttl === undefined ? [] : learntOf(mirror, ttl)),
    [mirror, version, ttl],
  )
  if (learnt.length === 0) return null
  return (
    <section class="panel" aria-labelledby="learnt-title">
      <h2 id="learnt-title">Adaptive ttls</h2>
      <ul class="learnt">
        {learnt.map(({ kind, choice }) => (
          <li key={kind}>
            <a href={hrefTo('keys', `adaptive/${encodeURIComponent(kind)}`)}>{kind}</a>
            <b>{formatSpan(choice.ttl)}</b>
            <span class="badge">{choice.learnt ? 'learnt' : 'not learnt yet'}</span>
            <p class="quiet">{choice.why}</p>
          </li>
        ))}
      </ul>
    </section>
  )
}
