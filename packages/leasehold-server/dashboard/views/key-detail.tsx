import { useEffect, useState } from 'preact/hooks'
import { loadLine } from '../live/loading.ts'
import { takeKey } from '../model/deeds.ts'
import { count, fullTime, spoken } from '../model/format.ts'
import type { ClaimRow, KeyRow } from '../model/mirror.ts'
import { ActButton, useHindrance } from '../parts/act-dialog.tsx'
import { useLive } from '../parts/context.ts'
import { History, useHistory } from '../parts/history.tsx'
import { DemoBadge, DrainBar, Empty, Facts, HolderLink } from '../parts/small.tsx'
import { WindowList } from '../parts/window-list.tsx'

const ROW_HEIGHT = 34
const QUEUE_ROWS = 8
const HOLDERS_SHOWN = 50
/** Keys of the server itself: their values are for nobody to read. */
const OWN = 'leasehold/'

/** One key: who holds it and until when, who waits, what it says, and who held it before. */
export function KeyDetail({ name }: { readonly name: string | undefined }) {
  const { mirror, store, isRead } = useLive()
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
        <p class="quiet">{isRead ? 'Nobody claims it now.' : 'Not read yet.'}</p>
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
  const hindrance = useHindrance()
  const holders = row.claims.slice(0, row.held)
  const waiting = row.claims.slice(row.held)
  const mayTake = live.may('admin', row.key) && holders.length > 0
  return (
    <>
      <h3>{holders.length > 1 ? `${count(holders.length)} holders` : 'Holder'}</h3>
      {holders.slice(0, HOLDERS_SHOWN).map((claim) => (
        <Holding key={claim.token} row={row} claim={claim} mayTake={mayTake} />
      ))}
      {holders.length > HOLDERS_SHOWN && (
        <p class="quiet">and {count(holders.length - HOLDERS_SHOWN)} more</p>
      )}
      {mayTake && hindrance !== undefined && <p class="quiet hindrance">{hindrance}</p>}
      <h3>
        Queue <span class="count">{count(row.count - row.held)}</span>
      </h3>
      {waiting.length === 0 ? <p class="quiet">Nobody waits.</p> : <Queue waiting={waiting} />}
    </>
  )
}

interface HoldingProps {
  readonly row: KeyRow
  readonly claim: ClaimRow
  readonly mayTake: boolean
}

/** One who holds a key: each of those who share one has a token, a lease and a value of its own. */
function Holding({ row, claim, mayTake }: HoldingProps) {
  const { book, now } = useLive()
  const { holder, lease, token, limit, mode, value } = claim
  const since = claim.heldSince ?? claim.claimedAt
  const label = row.held > 1 ? `Take it away from ${holder}…` : undefined
  return (
    <div class="holding">
      <div class="held">
        <HolderLink holder={holder} lease={lease} />
        <DrainBar lease={book.see(lease)} now={now()} />
      </div>
      <Facts
        facts={[
          ['Token', <span class="token">{token}</span>],
          ['Held for', spoken(now() - since)],
          ['Since', fullTime(since)],
          ['Mode', limit === undefined ? mode : `${mode}, at most ${limit}`],
          ['Lease', <HolderLink holder={lease} lease={lease} />],
        ]}
      />
      {mayTake && (
        <div class="actions">
          <ActButton
            text="Take it away…"
            {...{ label }}
            isDanger
            deed={() => takeKey(row, token)}
          />
        </div>
      )}
      {value !== undefined && <Value name={row.key} text={value} />}
    </div>
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

/** Only where nothing of it changes by that: a number may have more digits than a browser keeps. */
function laidOut(text: string): string {
  const bare = (it: string) => it.replace(/\s/g, '')
  try {
    const told = JSON.stringify(JSON.parse(text), undefined, 2)
    return bare(told) === bare(text) ? told : text
  } catch {
    return text
  }
}
