import type { End, Lease } from 'leasehold/port'
import { useEffect, useState } from 'preact/hooks'
import { breakLease, PERIODS, revokeLease } from '../model/admin-actions.ts'
import { count, formatSpan, fullTime, plural } from '../model/format.ts'
import { rhythmOf } from '../model/heartbeats.ts'
import type { LeaseRow, Mirror } from '../model/mirror.ts'
import { leaseName, leaseTree } from '../model/trees/lease-tree.ts'
import { ActionButton, useDisabledReason } from '../parts/action-dialog.tsx'
import { DemoBadge, DrainBar, Empty, Facts, HolderLink, KeyLink } from '../parts/badges.tsx'
import { useLive } from '../parts/context.ts'
import { CopyButton } from '../parts/copy.tsx'
import { Branches, HolderLeases } from './holder-detail.tsx'

const KEYS_SHOWN = 200
/** The period of the drawn heartbeats. */
const HEARTBEATS_MS = 60_000

/** One lease: its claims, its heartbeats, and the leases under it. */
export function LeaseDetail({ id }: { readonly id: string | undefined }) {
  const live = useLive()
  const { mirror, visibleLeases, now } = live
  const row = id === undefined ? undefined : mirror.leases.get(id)
  useEffect(() => {
    if (id !== undefined) void visibleLeases.read(id)
  }, [id, visibleLeases])
  if (id === undefined) {
    return (
      <section class="panel detail" aria-label="Lease">
        <Empty title="Choose a lease">
          <p>See its claims, its heartbeats and the leases under it.</p>
        </Empty>
      </section>
    )
  }
  const lease = visibleLeases.show(id)
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
          All leases of {row.holder}
        </a>
      )}
      {row === undefined && !visibleLeases.hasRead(id) && <p class="quiet">Loading…</p>}
      {row === undefined ? (
        visibleLeases.hasRead(id) && <Gone id={id} />
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

/** How a lease ended, if the store still knows. */
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
      The lease {id} has ended.{said}
    </p>
  )
}

function LeaseFacts({ row, lease }: { readonly row: LeaseRow; readonly lease: Lease | undefined }) {
  const { now, visibleLeases } = useLive()
  if (lease === undefined) return <Facts facts={[['Lease', row.id]]} />
  const { ttl, grace, grantedAt, renewedAt, parent, labels } = lease
  return (
    <Facts
      facts={[
        [
          'Lease',
          <>
            <code>{row.id}</code> <CopyButton text={row.id} label="the lease" />
          </>,
        ],
        [
          'Ttl',
          grace > 0 ? `${formatSpan(ttl)}, and ${formatSpan(grace)} of grace` : formatSpan(ttl),
        ],
        ['Last heartbeat', `${formatSpan(now() - renewedAt)} ago`],
        ['Granted', fullTime(grantedAt)],
        ['Ends', endText(lease, visibleLeases.breakOf(row.id), now())],
        ...(parent === undefined ? [] : ([['Ends with', <Parent id={parent} />]] as const)),
        ...Object.entries(labels).map(([name, value]) => [name, value] as const),
      ]}
    />
  )
}

/** The parent lease with its name and holder. */
function Parent({ id }: { readonly id: string }) {
  const { mirror } = useLive()
  const row = mirror.leases.get(id)
  const name = row === undefined ? id : `${leaseName(row)} of ${row.holder}`
  return <HolderLink holder={name} lease={id} />
}

/** When the lease ends, and who broke it, if somebody did. */
function endText({ endOfLife }: Lease, broken: End | undefined, now: number): string {
  if (endOfLife === Infinity) return 'when it is not renewed'
  const left = formatSpan(endOfLife - now)
  if (broken === undefined) return `in ${left} at the latest`
  const { by = 'somebody', why } = broken
  return `broken by ${by}${why ? `: ${why}` : ''}, ends in ${left}`
}

function LeaseActions({ row }: { readonly row: LeaseRow }) {
  const live = useLive()
  const disabledReason = useDisabledReason()
  const { mirror, visibleLeases, now } = live
  const may =
    live.may('admin', '') ||
    (row.keys.length > 0 && row.keys.every((key) => live.may('admin', key)))
  if (!may) return null
  const isBroken = visibleLeases.breakOf(row.id) !== undefined
  const left = (row.detail?.endOfLife ?? Infinity) - now()
  return (
    <div class="actions">
      {left > PERIODS[0]!.ms && (
        <ActionButton
          text={isBroken ? 'Break it sooner…' : 'Break it…'}
          action={() => breakLease(mirror, row)}
        />
      )}
      <ActionButton text="End it now…" isDanger action={() => revokeLease(mirror, row)} />
      {disabledReason !== undefined && <span class="quiet disabledReason">{disabledReason}</span>}
    </div>
  )
}

/** The heartbeats of the last minute as marks, and their rhythm. */
function Heartbeats({ id, lease }: { readonly id: string; readonly lease: Lease | undefined }) {
  const { visibleLeases, now } = useLive()
  const beats = visibleLeases.heartbeatsOf(id)
  const rhythm = rhythmOf(beats)
  const since = now() - HEARTBEATS_MS
  if (lease?.ttl === Infinity) return null
  return (
    <>
      <h3>Heartbeats</h3>
      <div class="beats" role="img" aria-label={`${plural(beats.length, 'heartbeat')} seen`}>
        {beats
          .filter((at) => at > since)
          .map((at) => (
            <span
              key={at}
              style={{ left: `${((100 * (at - since)) / HEARTBEATS_MS).toFixed(2)}%` }}
            />
          ))}
      </div>
      <div class="band-times" aria-hidden="true">
        <span>{formatSpan(HEARTBEATS_MS)} ago, one mark for each heartbeat</span>
        <span>now</span>
      </div>
      <p class="quiet">
        {rhythm === undefined
          ? `${plural(beats.length, 'heartbeat')} since this page was opened; a rhythm needs three.`
          : `Every ${formatSpan(rhythm.every)}, with a jitter of ${formatSpan(rhythm.jitter)}; the longest pause was ${formatSpan(rhythm.longest)}${lease === undefined ? '' : `; the ttl is ${formatSpan(lease.ttl)}`}.`}
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
      {keys.length > 0 && (
        <table class="rows claims">
          <thead>
            <tr>
              <th scope="col">Key</th>
              <th scope="col">Token</th>
              <th scope="col">State</th>
            </tr>
          </thead>
          <tbody>
            {keys.slice(0, KEYS_SHOWN).map((key) => {
              const found = mirror.keys.get(key)
              const at = found?.claims.findIndex(({ lease }) => lease === row.id) ?? -1
              const claim = found?.claims[at]
              if (found === undefined || claim === undefined) return null
              return (
                <tr key={`${key} ${claim.token}`}>
                  <td>
                    <KeyLink name={key} />
                  </td>
                  <td class="token">#{claim.token}</td>
                  <td>
                    {at < found.held
                      ? `held for ${formatSpan(now() - (claim.heldSince ?? claim.claimedAt))}`
                      : `waits, number ${at - found.held + 1} in the queue`}
                  </td>
                </tr>
              )
            })}
          </tbody>
        </table>
      )}
      {keys.length > KEYS_SHOWN && <p class="quiet">and {count(keys.length - KEYS_SHOWN)} more</p>}
    </>
  )
}

/** The leases under it as a tree, and the other leases of its holder. */
function Family({ mirror, row }: { readonly mirror: Mirror; readonly row: LeaseRow }) {
  const { under } = leaseTree(mirror, row.id)
  return (
    <>
      {under.length > 0 && (
        <>
          <h3>Leases under it</h3>
          <Branches branches={under} holder={row.holder} />
        </>
      )}
      <HolderLeases holder={row.holder} current={row.id} />
    </>
  )
}
