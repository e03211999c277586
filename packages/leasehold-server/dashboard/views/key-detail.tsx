import { useEffect, useState } from 'preact/hooks'
import { loadQueue } from '../live/load-store.ts'
import { takeKey } from '../model/admin-actions.ts'
import { count, formatSpan, fullTime } from '../model/format.ts'
import { internalKey } from '../model/internal-keys.ts'
import type { ClaimRow, KeyRow } from '../model/mirror.ts'
import { ActionButton, useDisabledReason } from '../parts/action-dialog.tsx'
import { DemoBadge, DrainBar, Empty, Facts, HolderLink } from '../parts/badges.tsx'
import { Columns } from '../parts/columns.tsx'
import { useLive } from '../parts/context.ts'
import { CopyButton } from '../parts/copy.tsx'
import { History, useHistory } from '../parts/history.tsx'
import { WindowList } from '../parts/window-list.tsx'

const ROW_HEIGHT = 34
const QUEUE_ROWS = 8
const HOLDERS_SHOWN = 50
const QUEUE_COLUMNS = [
  ['place', 'No.'],
  ['holder', 'Waiter'],
  ['token', 'Token'],
  ['lasted', 'Waits for'],
] as const
/** The server's own keys; their values are not shown. */
const OWN = 'leasehold/'

/** One key: its holders, its queue, its value and its history. */
export function KeyDetail({ name }: { readonly name: string | undefined }) {
  const { mirror, store, isRead } = useLive()
  const row = name === undefined ? undefined : mirror.keys.get(name)
  const tenures = useHistory(name)
  const isWhole = row === undefined || row.count === row.claims.length
  useEffect(() => {
    if (name !== undefined && !isWhole && store !== undefined) {
      loadQueue(store, name, mirror).catch(() => {})
    }
  }, [name, isWhole, store])
  if (name === undefined) {
    return (
      <section class="panel detail" aria-label="Key">
        <Empty title="Choose a key">
          <p>See its holder, its queue, its value and its history.</p>
        </Empty>
      </section>
    )
  }
  return (
    <section class="panel detail" aria-labelledby="key-title">
      <a class="back" href="#/keys">
        All keys
      </a>
      <div class="title-line">
        <h2 id="key-title" class="key">
          {name} <DemoBadge name={name} />
        </h2>
        <CopyButton text={name} label="the key" />
      </div>
      <BelongsTo name={name} />
      {row === undefined ? (
        <p class="quiet">{isRead ? 'Nobody claims it now.' : 'Loading…'}</p>
      ) : (
        <Held key={name} row={row} />
      )}
      <h3>History</h3>
      <History name={name} tenures={tenures} what="Holders" />
    </section>
  )
}

/** What an internal key belongs to. */
function BelongsTo({ name }: { readonly name: string }) {
  const internal = internalKey(name)
  if (internal === undefined) return null
  const { owner, purpose, href } = internal
  return (
    <p class="quiet">
      Internal key of {href === undefined ? owner : <a href={href}>{owner}</a>}: {purpose}
    </p>
  )
}

function Held({ row }: { readonly row: KeyRow }) {
  const live = useLive()
  const disabledReason = useDisabledReason()
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
      {mayTake && disabledReason !== undefined && (
        <p class="quiet disabledReason">{disabledReason}</p>
      )}
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

/** One holder of a key. Each holder of a shared key has its own token, lease and value. */
function Holding({ row, claim, mayTake }: HoldingProps) {
  const { visibleLeases, now } = useLive()
  const { holder, lease, token, limit, mode, value } = claim
  const since = claim.heldSince ?? claim.claimedAt
  const label = row.held > 1 ? `Take it away from ${holder}…` : undefined
  return (
    <div class="holding">
      <div class="held">
        <HolderLink holder={holder} lease={lease} />
        <DrainBar lease={visibleLeases.show(lease)} now={now()} />
      </div>
      <Facts
        facts={[
          ['Token', <span class="token">{token}</span>],
          ['Held for', formatSpan(now() - since)],
          ['Since', fullTime(since)],
          ['Mode', limit === undefined ? mode : `${mode}, at most ${limit}`],
          ['Lease', <HolderLink holder={lease} lease={lease} />],
        ]}
      />
      {mayTake && (
        <div class="actions">
          <ActionButton
            text="Take it away…"
            {...{ label }}
            isDanger
            action={() => takeKey(row, token)}
          />
        </div>
      )}
      {value !== undefined && <Value name={row.key} value={value} />}
    </div>
  )
}

function Queue({ waiting }: { readonly waiting: readonly ClaimRow[] }) {
  const { now } = useLive()
  return (
    <>
      <Columns of="queued" names={QUEUE_COLUMNS} />
      <div class="queue" style={{ height: Math.min(waiting.length, QUEUE_ROWS) * ROW_HEIGHT }}>
        <WindowList
          role="list"
          label="The queue, in order"
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
                <span class="lasted">{formatSpan(now() - claimedAt)}</span>
              </div>
            )
          }}
        />
      </div>
    </>
  )
}

/** The value of a claim: formatted if it is JSON, and hidden at first if it may be a secret. */
function Value({ name, value }: { readonly name: string; readonly value: string }) {
  const isPrivate = name.startsWith('session/') || name.startsWith('cache/')
  const [isShown, show] = useState(!isPrivate)
  if (name.startsWith(OWN)) return <p class="quiet">The value is internal to the server.</p>
  return (
    <>
      <h3>Value</h3>
      {isShown ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element needs the focus.
        <pre class="value" tabIndex={0}>
          {formatJson(value)}
        </pre>
      ) : (
        <button type="button" onClick={() => show(true)}>
          Show {count(value.length)} characters
        </button>
      )}
    </>
  )
}

/** Formats JSON, unless that would change it: a browser cuts long numbers. */
function formatJson(value: string): string {
  const bare = (it: string) => it.replace(/\s/g, '')
  try {
    const formatted = JSON.stringify(JSON.parse(value), undefined, 2)
    return bare(formatted) === bare(value) ? formatted : value
  } catch {
    return value
  }
}
