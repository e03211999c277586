import type { End, Lease } from 'leasehold/port'
import { useEffect, useState } from 'preact/hooks'
import { breakLease, PERIODS, revokeLease } from '../model/deeds.ts'
import { branchOf, leaseName } from '../model/footprint.ts'
import { count, fullTime, several, spoken } from '../model/format.ts'
import { rhythmOf } from '../model/heartbeats.ts'
import type { LeaseRow, Mirror } from '../model/mirror.ts'
import { ActButton, useHindrance } from '../parts/act-dialog.tsx'
import { useLive } from '../parts/context.ts'
import { DemoBadge, DrainBar, Empty, Facts, HolderLink, KeyLink } from '../parts/small.tsx'
import { Branches, Footprint } from './footprint.tsx'

const KEYS_SHOWN = 200
/** The last so many milliseconds of heartbeats are drawn. */
const BEATS_MS = 60_000

/** The whole footprint of one holder: a lease, its claims, the leases under it, its heartbeats. */
export function LeaseDetail({ id }: { readonly id: string | undefined }) {
  const live = useLive()
  const { mirror, book, now } = live
  const row = id === undefined ? undefined : mirror.leases.get(id)
  useEffect(() => {
    if (id !== undefined) void book.ask(id)
  }, [id, book])
  if (id === undefined) {
    return (
      <section class="panel detail" aria-label="Lease">
        <Empty title="Choose a lease">
          <p>It shows all that its holder has: claims, leases under it, and its heartbeats.</p>
        </Empty>
      </section>
    )
  }
  const lease = book.see(id)
  return (
    <section class="panel detail" aria-labelledby="lease-title">
      <a class="back" href="#/leases">
        All leases
      </a>
      <h2 id="lease-title">
        {row?.holder ?? id} {row !== undefined && <DemoBadge name={row.holder} />}
        {row !== undefined && <span class="quiet">{leaseName(row)}</span>}
      </h2>
      {row !== undefined && mirror.holders.get(row.holder)!.size > 1 && (
        <a class="whole" href={`#/leases?holder=${encodeURIComponent(row.holder)}`}>
          All that {row.holder} has
        </a>
      )}
      {row === undefined && !book.hasRead(id) && <p class="quiet">Not read yet.</p>}
      {row === undefined ? (
        book.hasRead(id) && <Gone id={id} />
      ) : (
        <>
          <DrainBar lease={lease} now={now()} />
          <LeaseFacts row={row} lease={lease} />
          <LeaseActions row={row} />
          <Heartbeats id={id} lease={lease} />
          <Claims row={row} />
          <Family mirror={mirror} row={row} />
        </>
      )}
    </section>
  )
}

/** How a lease ended, where the store still knows. */
function Gone({ id }: { readonly id: string }) {
  const { store } = useLive()
  const [said, say] = useState('')
  useEffect(() => {
    store?.read({ lease: id, limit: 1 }).then(
      ({ end }) => {
        const by = end?.by === undefined ? '' : ` by ${end.by}${end.why ? `: ${end.why}` : ''}`
        say(end === undefined ? '' : ` It was ${end.reason}${by}.`)
      },
      () => {},
    )
  }, [id, store])
  return (
    <p class="quiet">
      The lease {id} is over.{said}
    </p>
  )
}

function LeaseFacts({ row, lease }: { readonly row: LeaseRow; readonly lease: Lease | undefined }) {
  const { now, book } = useLive()
  if (lease === undefined) return <Facts facts={[['Lease', row.id]]} />
  const { ttl, grace, grantedAt, renewedAt, parent, labels } = lease
  return (
    <Facts
      facts={[
        ['Lease', <code>{row.id}</code>],
        ['Ttl', grace > 0 ? `${spoken(ttl)}, and ${spoken(grace)} of grace` : spoken(ttl)],
        ['Last heartbeat', `${spoken(now() - renewedAt)} ago`],
        ['Granted', fullTime(grantedAt)],
        ['Ends', endText(lease, book.cutOf(row.id), now())],
        ...(parent === undefined ? [] : ([['Ends with', <Parent id={parent} />]] as const)),
        ...Object.entries(labels).map(([name, value]) => [name, value] as const),
      ]}
    />
  )
}

/** The lease above: whose it is, and what it is for. */
function Parent({ id }: { readonly id: string }) {
  const { mirror } = useLive()
  const row = mirror.leases.get(id)
  const name = row === undefined ? id : `${leaseName(row)} of ${row.holder}`
  return <HolderLink holder={name} lease={id} />
}

/** When it ends; and who has seen to that, where somebody has broken it. */
function endText({ endOfLife }: Lease, cut: End | undefined, now: number): string {
  if (endOfLife === Infinity) return 'when it is not renewed'
  const left = spoken(endOfLife - now)
  if (cut === undefined) return `in ${left} at the latest`
  const { by = 'somebody', why } = cut
  return `broken by ${by}${why ? `: ${why}` : ''}, ends in ${left}`
}

function LeaseActions({ row }: { readonly row: LeaseRow }) {
  const live = useLive()
  const hindrance = useHindrance()
  const { mirror, book, now } = live
  const may =
    live.may('admin', '') ||
    (row.keys.length > 0 && row.keys.every((key) => live.may('admin', key)))
  if (!may) return null
  const isCut = book.cutOf(row.id) !== undefined
  const left = (row.detail?.endOfLife ?? Infinity) - now()
  return (
    <div class="actions">
      {left > PERIODS[0]!.ms && (
        <ActButton
          text={isCut ? 'Break it sooner…' : 'Break it…'}
          deed={() => breakLease(mirror, row)}
        />
      )}
      <ActButton text="End it now…" isDanger deed={() => revokeLease(mirror, row)} />
      {hindrance !== undefined && <span class="quiet hindrance">{hindrance}</span>}
    </div>
  )
}

/** When it was renewed, as marks on the last minute, and how regularly. */
function Heartbeats({ id, lease }: { readonly id: string; readonly lease: Lease | undefined }) {
  const { book, now } = useLive()
  const beats = book.beatsOf(id)
  const rhythm = rhythmOf(beats)
  const since = now() - BEATS_MS
  if (lease?.ttl === Infinity) return null
  return (
    <>
      <h3>Heartbeats</h3>
      <div class="beats" role="img" aria-label={`${several(beats.length, 'heartbeat')} seen`}>
        {beats
          .filter((at) => at > since)
          .map((at) => (
            <span key={at} style={{ left: `${((100 * (at - since)) / BEATS_MS).toFixed(2)}%` }} />
          ))}
      </div>
      <p class="quiet">
        {rhythm === undefined
          ? `They are told from now on: ${several(beats.length, 'heartbeat')} so far, and three make a rhythm.`
          : `Every ${spoken(rhythm.every)}, with a jitter of ${spoken(rhythm.jitter)}; the longest pause was ${spoken(rhythm.longest)}${lease === undefined ? '' : `, of ${spoken(lease.ttl)} that it may be`}.`}
      </p>
    </>
  )
}

function Claims({ row }: { readonly row: LeaseRow }) {
  const { mirror, now } = useLive()
  const keys = [...row.keys].sort()
  return (
    <>
      <h3>
        Claims <span class="count">{count(keys.length)}</span>
      </h3>
      {keys.length === 0 && <p class="quiet">It claims no key.</p>}
      <ul class="claims">
        {keys.slice(0, KEYS_SHOWN).map((key) => {
          const line = mirror.keys.get(key)
          const at = line?.claims.findIndex(({ lease }) => lease === row.id) ?? -1
          const claim = line?.claims[at]
          if (line === undefined || claim === undefined) return null
          return (
            <li key={`${key} ${claim.token}`}>
              <KeyLink name={key} />
              <span class="token">#{claim.token}</span>
              <span class="lasted">
                {at < line.held
                  ? `held for ${spoken(now() - (claim.heldSince ?? claim.claimedAt))}`
                  : `waits, ${at - line.held + 1} in line`}
              </span>
            </li>
          )
        })}
      </ul>
      {keys.length > KEYS_SHOWN && <p class="quiet">and {count(keys.length - KEYS_SHOWN)} more</p>}
    </>
  )
}

/** The leases under it as a tree, and the others of its holder. */
function Family({ mirror, row }: { readonly mirror: Mirror; readonly row: LeaseRow }) {
  const { under } = branchOf(mirror, row.id)
  return (
    <>
      {under.length > 0 && (
        <>
          <h3>Leases under it</h3>
          <Branches branches={under} holder={row.holder} />
        </>
      )}
      <Footprint holder={row.holder} current={row.id} />
    </>
  )
}
