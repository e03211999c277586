import { useEffect, useState } from 'preact/hooks'
import { loadLine } from '../live/loading.ts'
import { takeKey } from '../model/deeds.ts'
import { count, fullTime, spoken } from '../model/format.ts'
import type { ClaimRow, KeyRow } from '../model/mirror.ts'
import { propose } from '../parts/act-dialog.tsx'
import { useLive } from '../parts/context.ts'
import { History, useHistory } from '../parts/history.tsx'
import { DemoBadge, DrainBar, Empty, Facts, HolderLink } from '../parts/small.tsx'
import { WindowList } from '../parts/window-list.tsx'

const ROW_HEIGHT = 34
const QUEUE_ROWS = 8
/** Keys of the server itself: their values are for nobody to read. */
const OWN = 'leasehold/'

/** One key: who holds it and until when, who waits, what it says, and who held it before. */
export function KeyDetail({ name }: { readonly name: string | undefined }) {
  const { mirror, store } = useLive()
  const row = name === undefined ? undefined : mirror.keys.get(name)
  const tenures = useHistory(name)
  const isWhole = row === undefined || row.count === row.claims.length
  useEffect(() => {
    if (name !== undefined && !isWhole && store !== undefined) {
      loadLine(store, name, mirror).catch(() => {})
    }
  }, [name, isWhole, store])
  if (name === undefined) {
    return (
      <section class="panel detail" aria-label="Key">
        <Empty title="Choose a key">
          <p>It shows its holder, those who wait, its value, and who held it before.</p>
        </Empty>
      </section>
    )
  }
  return (
    <section class="panel detail" aria-labelledby="key-title">
      <a class="back" href="#/keys">
        All keys
      </a>
      <h2 id="key-title" class="key">
        {name} <DemoBadge name={name} />
      </h2>
      {row === undefined ? (
        <p class="quiet">Nobody claims it now.</p>
      ) : (
        <Held key={name} row={row} />
      )}
      <h3>History</h3>
      <History name={name} tenures={tenures} what="Holders" />
    </section>
  )
}

function Held({ row }: { readonly row: KeyRow }) {
  const live = useLive()
  const { book, now } = live
  const holders = row.claims.slice(0, row.held)
  const waiting = row.claims.slice(row.held)
  const first = holders[0]
  return (
    <>
      <h3>{holders.length > 1 ? `${count(holders.length)} holders` : 'Holder'}</h3>
      {holders.slice(0, 50).map((claim) => (
        <div class="held" key={claim.token}>
          <HolderLink holder={claim.holder} lease={claim.lease} />
          <DrainBar lease={book.see(claim.lease)} now={now()} />
        </div>
      ))}
      {first !== undefined && (
        <Facts
          facts={[
            ['Token', <span class="token">{first.token}</span>],
            ['Held for', spoken(now() - (first.heldSince ?? first.claimedAt))],
            ['Since', fullTime(first.heldSince ?? first.claimedAt)],
            [
              'Mode',
              first.limit === undefined ? first.mode : `${first.mode}, at most ${first.limit}`,
            ],
            ['Lease', <HolderLink holder={first.lease} lease={first.lease} />],
          ]}
        />
      )}
      {live.may('admin', row.key) && first !== undefined && (
        <div class="actions">
          <button type="button" class="danger" onClick={() => propose(takeKey(row))}>
            Take it away…
          </button>
        </div>
      )}
      {first?.value !== undefined && <Value name={row.key} text={first.value} />}
      <h3>
        Queue <span class="count">{count(row.count - row.held)}</span>
      </h3>
      {waiting.length === 0 ? <p class="quiet">Nobody waits.</p> : <Queue waiting={waiting} />}
    </>
  )
}

function Queue({ waiting }: { readonly waiting: readonly ClaimRow[] }) {
  const { now } = useLive()
  return (
    <div class="queue" style={{ height: Math.min(waiting.length, QUEUE_ROWS) * ROW_HEIGHT }}>
      <WindowList
        role="list"
        label="Those who wait, in order"
        count={waiting.length}
        rowHeight={ROW_HEIGHT}
        row={(index) => {
          const { holder, lease, token, claimedAt, mode } = waiting[index]!
          return (
            <div class="queued">
              <span class="place">{index + 1}</span>
              <HolderLink holder={holder} lease={lease} />
              <span class="token">#{token}</span>
              {mode === 'shared' && <span class="badge">shared</span>}
              <span class="lasted">{spoken(now() - claimedAt)}</span>
            </div>
          )
        }}
      />
    </div>
  )
}

/** A claim's value: as people read it where it is JSON, and hidden where it may be a secret. */
function Value({ name, text }: { readonly name: string; readonly text: string }) {
  const isPrivate = name.startsWith('session/') || name.startsWith('cache/')
  const [isShown, show] = useState(!isPrivate)
  if (name.startsWith(OWN)) return <p class="quiet">Its value is the server's own.</p>
  return (
    <>
      <h3>Value</h3>
      {isShown ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what can be scrolled must be reached.
        <pre class="value" tabIndex={0}>
          {laidOut(text)}
        </pre>
      ) : (
        <button type="button" onClick={() => show(true)}>
          Show {count(text.length)} characters
        </button>
      )}
    </>
  )
}

function laidOut(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2)
  } catch {
    return text
  }
}
