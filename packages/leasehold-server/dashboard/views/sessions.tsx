import { useMemo } from 'preact/hooks'
import { revokeLease } from '../model/admin-actions.ts'
import { count, formatSpan } from '../model/format.ts'
import {
  findSessions,
  type SessionView,
  sessionAt,
  sessionCount,
  sessionTables,
} from '../model/recipes/sessions.ts'
import { ActionButton } from '../parts/action-dialog.tsx'
import { DemoBadge, DrainBar, None } from '../parts/badges.tsx'
import { Columns } from '../parts/columns.tsx'
import { useLive } from '../parts/context.ts'
import { hrefTo, useQuery } from '../parts/route.ts'
import { Search } from '../parts/search.tsx'
import { useNarrow, WindowList } from '../parts/window-list.tsx'

const ROW_HEIGHT = 40
/** On a narrow page, a session takes three lines. */
const NARROW_HEIGHT = 92
const ROWS_MAX = 12
/** The shortest interval for repeating a search while sessions change. */
const SEARCH_MS = 400
const COLUMNS = [
  ['holder', 'User'],
  ['lease-id', 'Session'],
  ['lasted', 'Age'],
  ['drain', 'Time left'],
  ['button', ''],
] as const

export function Sessions() {
  const { mirror } = useLive()
  const tables = sessionTables(mirror)
  const query = useQuery('sessions')
  const text = query.get('search')
  return (
    <div class="stack">
      <h1>
        Sessions{' '}
        <span class="count">
          {count(tables.reduce((sum, table) => sum + sessionCount(mirror, table), 0))}
        </span>
      </h1>
      {tables.length === 0 && (
        <None title="No sessions">
          <p>
            A session lasts while it is used, up to its maximum:{' '}
            <code>leasehold.sessions().create({'{ user, data }'})</code>.
          </p>
        </None>
      )}
      {tables.length > 0 && (
        <div class="filters">
          <Search
            what="users and sessions"
            text={text}
            change={(search) => query.set({ search })}
          />
        </div>
      )}
      {tables.map((table) => (
        <Table key={table} table={table} text={text} />
      ))}
    </div>
  )
}

function Table({ table, text }: { readonly table: string; readonly text: string }) {
  const { mirror, now } = useLive()
  const all = sessionCount(mirror, table)
  const isSearch = text.trim() !== ''
  const moment = isSearch ? Math.floor(now() / SEARCH_MS) : 0
  const found = useMemo(
    () => (isSearch ? findSessions(mirror, table, text) : undefined),
    [mirror, table, text, moment],
  )
  const length = found?.length ?? all
  const rowHeight = useNarrow() ? NARROW_HEIGHT : ROW_HEIGHT
  const height = Math.min(length, ROWS_MAX) * rowHeight
  return (
    <section class="panel" aria-labelledby={`sessions-${table}`}>
      <h2 id={`sessions-${table}`}>
        {table} <DemoBadge name={`session/${table}/`} /> <span class="count">{count(all)}</span>
        {found !== undefined && <span class="quiet"> {count(length)} match</span>}
      </h2>
      <Columns of="session" names={COLUMNS} />
      <div style={{ height }} class="sessions">
        <WindowList
          role="list"
          label={`Sessions of ${table}`}
          count={length}
          rowHeight={rowHeight}
          row={(index) => (
            <SessionRow session={found?.[index] ?? sessionAt(mirror, table, index)} />
          )}
        />
      </div>
    </section>
  )
}

function SessionRow({ session }: { readonly session: SessionView | undefined }) {
  const live = useLive()
  const { visibleLeases, now, mirror } = live
  if (session === undefined) return null
  const { user, ref, since, max, lease, key } = session
  const row = mirror.leases.get(lease)
  const things = (row?.detail?.children ?? 0) + Math.max(0, (row?.keys.length ?? 0) - 2)
  return (
    <div class="session">
      <span class="holder">{user ?? 'nobody named'}</span>
      <a class="lease-id" href={hrefTo('leases', lease)} title={`lease ${lease}, ${ref}`}>
        {ref.slice(0, 10)}
      </a>
      <span class="lasted">
        for {formatSpan(now() - since)}
        {max < Infinity && `, at most ${formatSpan(max)}`}
        {things > 0 && `, ${things} under it`}
      </span>
      <DrainBar lease={visibleLeases.show(lease)} now={now()} />
      {live.may('admin', key) && row !== undefined && (
        <ActionButton
          text="End…"
          label={`End the session of ${user ?? ref.slice(0, 10)}`}
          action={() => revokeLease(mirror, row)}
        />
      )}
    </div>
  )
}
