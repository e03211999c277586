import { useMemo, useState } from 'preact/hooks'
import type { Levels } from '../../src/dashboard/feed-messages.ts'
import { type Concern, concernsOf } from '../model/attention.ts'
import { bytes, count } from '../model/format.ts'
import { useDemoFilter } from '../parts/badges.tsx'
import { useLive } from '../parts/context.ts'
import { EventFeed } from '../parts/event-feed.tsx'
import { Plot, type Series, Spark } from '../parts/plot.tsx'
import { FirstLease, Remains, useLesson } from './first-lease.tsx'

type Sample = ReturnType<typeof useLive>['feed']['samples'][number]

export function Overview() {
  const live = useLive()
  const { mirror, status } = live
  const isEmpty = status.is === 'live' && isUnused(mirror.keys.keys())
  const hasLesson = useLesson(isEmpty)
  return (
    <div class="overview">
      <Tiles />
      <Remains />
      {hasLesson && <FirstLease />}
      {!isEmpty && (
        <>
          <Plots />
          <div class="halves">
            <Attention />
            <EventFeed />
          </div>
        </>
      )}
    </div>
  )
}

/** Whether only the server itself holds keys. */
function isUnused(keys: Iterable<string>): boolean {
  for (const key of keys) if (!key.startsWith('leasehold/')) return false
  return true
}

/** The counts of one second. */
interface Level extends Levels {
  readonly at: number
}

const LEVELS_MAX = 300
const LEVEL_MS = 1000
const levels: Level[] = []

/**
 * Counts once a second in every view: the page knows at once what the server counts every few seconds.
 */
export function useLevels(): void {
  const { mirror, feed, status, now } = useLive()
  const at = now()
  const last = levels.at(-1)
  // The next user may not have the right to see these.
  if (status.is === 'signed-out') levels.length = 0
  // Start again if the clock was set back.
  if (last !== undefined && at < last.at - LEVEL_MS) levels.length = 0
  if (status.is !== 'live' || at < (levels.at(-1)?.at ?? 0) + LEVEL_MS) return
  const leases = feed.state?.leases?.count ?? mirror.leases.size
  const { keys, holders, waiting } = mirror
  levels.push({ at, leases, keys: keys.size, holders: holders.size, waiting })
  if (levels.length > LEVELS_MAX) levels.shift()
}

/** What the server has counted before a time, such as the opening of the page. */
function levelsBefore(samples: readonly Sample[], time: number): Level[] {
  return samples.flatMap(({ at, levels: counted }) =>
    counted === undefined || at >= time ? [] : [{ at, ...counted }],
  )
}

interface TileProps {
  readonly name: string
  readonly value: string
  readonly href?: string
  /** The times and values of the small plot. */
  readonly times: readonly number[]
  readonly values: readonly number[]
}

function Tile({ name, value, href, times, values }: TileProps) {
  return (
    <li class="tile">
      {href === undefined ? <span>{name}</span> : <a href={href}>{name}</a>}
      <b>{value}</b>
      <Spark {...{ name, times, values }} />
    </li>
  )
}

function Tiles() {
  const { mirror, feed } = useLive()
  const { samples, state } = feed
  const sample = samples.at(-1)
  const all = [...levelsBefore(samples, levels[0]?.at ?? Infinity), ...levels]
  const counted = (pick: (level: Level) => number) => ({
    ...{ times: all.map(({ at }) => at), values: all.map(pick) },
  })
  const sampled = (pick: (sample: Sample) => number) => ({
    ...{ times: samples.map(({ at }) => at), values: samples.map(pick) },
  })
  const leases = count(state?.leases?.count ?? mirror.leases.size)
  const latest = (show: (value: Sample) => string) => (sample === undefined ? '–' : show(sample))
  return (
    <ul class="tiles">
      <Tile name="Leases" value={leases} href="#/leases" {...counted((it) => it.leases)} />
      <Tile
        {...{ name: 'Keys', value: count(mirror.keys.size), href: '#/keys' }}
        {...counted((it) => it.keys)}
      />
      <Tile
        {...{ name: 'Holders', value: count(mirror.holders.size), href: '#/leases' }}
        {...counted((it) => it.holders)}
      />
      <Tile
        {...{ name: 'Waiting', value: count(mirror.waiting), href: '#/keys?waiting=only' }}
        {...counted((it) => it.waiting)}
      />
      <Tile
        {...{ name: 'Clients', value: latest((it) => count(it.streams)) }}
        {...sampled((it) => it.streams)}
      />
      <Tile
        {...{ name: 'Memory', value: latest((it) => bytes(it.memory)) }}
        {...sampled((it) => it.memory / 2 ** 20)}
      />
    </ul>
  )
}

function Plots() {
  const { feed } = useLive()
  const { samples } = feed
  if (samples.length === 0) {
    return (
      <p class="quiet">
        {feed.state === undefined
          ? 'The plots need the right to read all keys.'
          : 'Measuring the first second.'}
      </p>
    )
  }
  const times = samples.map(({ at }) => at)
  const values = (pick: (sample: Sample) => number | undefined) => samples.map(pick)
  const main = (name: string, pick: (sample: Sample) => number | undefined): Series => ({
    ...{ name, tone: 'main', values: values(pick) },
  })
  const more = (name: string, pick: (sample: Sample) => number | undefined): Series => ({
    ...{ name, tone: 'soft', values: values(pick) },
  })
  return (
    <section class="plots" aria-label="The last five minutes">
      <Plot
        {...{ title: 'Claims', unit: '/s', times, least: 1 }}
        series={[main('made', (it) => it.claims), more('released', (it) => it.releases)]}
      />
      <Plot
        {...{ title: 'Grants', unit: '/s', times, least: 1 }}
        series={[main('', (it) => it.grants)]}
      />
      <Plot
        {...{ title: 'Renewals', unit: '/s', times, least: 1 }}
        series={[main('', (it) => it.renewals)]}
      />
      <Plot
        {...{ title: 'Expiries', unit: '/s', times, least: 1 }}
        series={[
          { name: 'expired', tone: 'main', values: values((it) => it.expiries) },
          { name: 'by force', tone: 'warn', values: values((it) => it.revokes) },
        ]}
      />
      <Plot
        {...{ title: 'Expiry lag', unit: 'ms', times, least: 10 }}
        series={[main('', (it) => it.expiryLag)]}
      />
      <Plot
        {...{ title: 'Commit latency', unit: 'ms', times, least: 1, leavesOut: true }}
        series={[main('median', (it) => it.commit?.median), more('p99', (it) => it.commit?.high)]}
      />
    </section>
  )
}

function Attention() {
  const { mirror, recent, feed, now, isRead } = useLive()
  const isOver = useDemoFilter()
  // Computed at most twice a second.
  const moment = Math.floor(now() / 500)
  const concerns = useMemo(
    () =>
      concernsOf({
        ...{ mirror, recent, now: now() },
        lapsed: feed.state?.lapsed ?? [],
        storageError: feed.state?.storageError,
        expiryLag: feed.samples.at(-1)?.expiryLag,
      }).filter(({ kind, id }) => kind !== 'flapping' || !isOver?.(id.slice('flapping/'.length))),
    [moment, mirror, isOver],
  )
  const [isAll, showAll] = useState(false)
  const shown = isAll ? concerns : concerns.slice(0, 6)
  return (
    <section class="panel attention" aria-labelledby="attention-title">
      <h2 id="attention-title">
        Needs attention <span class="count">{concerns.length}</span>
      </h2>
      {concerns.length === 0 ? (
        <p class="quiet all-well">
          {isRead
            ? 'All is well: no lapsed leases, no long queues, and every service is healthy.'
            : 'Loading…'}
        </p>
      ) : (
        <ul>
          {shown.map((concern) => (
            <ConcernRow key={concern.id} concern={concern} />
          ))}
        </ul>
      )}
      {concerns.length > shown.length && (
        <button type="button" class="link" onClick={() => showAll(true)}>
          {concerns.length - shown.length} more
        </button>
      )}
    </section>
  )
}

function ConcernRow({ concern }: { readonly concern: Concern }) {
  const { level, title, detail, href } = concern
  return (
    <li class={`concern ${level}`}>
      <a href={href}>{title}</a>
      <span>{detail}</span>
    </li>
  )
}
