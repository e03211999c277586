import type { Tenure } from 'leasehold/port'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { formatSpan, fullTime, timeOfDay } from '../model/format.ts'
import type { ClaimRow, KeyRow } from '../model/mirror.ts'
import { placed, type Span, spansOf } from '../model/recipes/elections.ts'
import { Mark, toneOf } from './badges.tsx'
import { Legend } from './columns.tsx'
import { useLive } from './context.ts'

/** The shortest period that the timeline shows. */
const SHORTEST_MS = 60_000
/** The most simultaneous holders that are drawn below each other. */
const LANES_MAX = 6

/** The previous holders of a key, read again when its holders change. */
export function useHistory(key: string | undefined): readonly Tenure[] | undefined {
  const { store, mirror, now } = useLive()
  const [tenures, setTenures] = useState<readonly Tenure[] | undefined>(undefined)
  const row = key === undefined ? undefined : mirror.keys.get(key)
  // A key whose holders change all the time is read at most twice a second.
  const moment = Math.floor(now() / 500)
  const front = useMemo(() => tokensOf(row), [key, moment])
  useEffect(() => {
    let isOver = false
    if (key === undefined || store === undefined) return
    store.read({ history: key }).then(
      (reading) => {
        if (!isOver) setTenures(reading.tenures)
      },
      () => {},
    )
    return () => {
      isOver = true
    }
  }, [key, store, front])
  return tenures
}

/** The tokens of the current holders, as a string that changes with them. */
function tokensOf(row: KeyRow | undefined): string {
  return (row?.claims.slice(0, row.held) ?? []).map(({ token }) => token).join()
}

export interface HistoryProps {
  readonly name: string
  readonly tenures: readonly Tenure[] | undefined
  readonly what: string
}

/** The holders of a key over time, as a timeline and as a list. */
export function History({ name, tenures, what }: HistoryProps) {
  const { mirror, now } = useLive()
  const row = mirror.keys.get(name)
  const holding = row?.claims.slice(0, row.held) ?? []
  const spans = spansWith(tenures ?? [], holding, now())
  if (spans.length === 0) return <p class="quiet">No history is available.</p>
  return (
    <div class="history">
      <Band spans={spans} now={now()} label={`${what} of ${name}`} />
      <table class="rows">
        <thead>
          <tr>
            <th scope="col">From</th>
            <th scope="col">Holder</th>
            <th scope="col">Token</th>
            <th scope="col">Held for</th>
            <th scope="col">End</th>
          </tr>
        </thead>
        <tbody>
          {[...spans].reverse().map((span) => (
            <HistoryRow key={`${span.token} ${span.from}`} span={span} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** The past and current holders of a key; a shared key has several. */
function spansWith(
  tenures: readonly Tenure[],
  holding: readonly ClaimRow[],
  now: number,
): readonly Span[] {
  const current = holding.map(({ holder, token, heldSince, claimedAt }) => {
    const from = heldSince ?? claimedAt
    return { holder, token, from, to: Math.max(now, from), end: undefined }
  })
  const past = spansOf(tenures, undefined, now)
  return [...past, ...current].sort((a, b) => a.from - b.from)
}

/** The lane of each span, so that none covers another. The spans are sorted by their start. */
export function lanesOf(spans: readonly Pick<Span, 'from' | 'to'>[]): readonly number[] {
  const ends: number[] = []
  return spans.map(({ from, to }) => {
    const free = ends.findIndex((end) => end <= from)
    const lane = free >= 0 ? free : Math.min(ends.length, LANES_MAX - 1)
    ends[lane] = Math.max(ends[lane] ?? 0, to)
    return lane
  })
}

export interface BandProps {
  readonly spans: readonly Span[]
  readonly now: number
  readonly label: string
}

/** A timeline of spans. The tooltip of each shows its holder and how it ended. */
export function Band({ spans, now, label }: BandProps) {
  const begin = Math.min(now - SHORTEST_MS, spans[0]?.from ?? now)
  const lanes = lanesOf(spans)
  const height = 100 / (Math.max(0, ...lanes) + 1)
  const style = { height: `${(160 / height).toFixed(1)}rem` }
  return (
    <div class="band-box">
      <div
        class="band"
        style={height < 100 ? style : {}}
        role="img"
        aria-label={`${label}: ${spans.length} times, the last by ${spans.at(-1)?.holder}`}
      >
        {spans.map((span, at) => {
          const { left, width } = placed(span, begin, now)
          const tone = span.end === undefined ? 'current' : toneOf(span.end.reason)
          return (
            <span
              key={`${span.token} ${span.from}`}
              class={`span ${tone}`}
              style={{
                ...{ left: `${100 * left}%`, width: `${100 * width}%` },
                ...(height < 100 && { top: `${lanes[at]! * height}%`, height: `${height}%` }),
              }}
              title={`${span.holder} #${span.token}, ${formatSpan(span.to - span.from)}, ${span.end?.reason ?? 'now'}`}
            >
              {width > 0.12 ? span.holder : ''}
            </span>
          )
        })}
      </div>
      <div class="band-times" aria-hidden="true">
        <span>{timeOfDay(begin)}</span>
        <span>now</span>
      </div>
      <Legend
        of="bands"
        items={[
          ['current', 'current holder'],
          ['', 'released'],
          ['warn', 'expired'],
          ['bad', 'ended by force'],
        ]}
      />
    </div>
  )
}

/** How something ended, and who ended it; or that it lasts. */
export function EndMark({ end }: Pick<Span, 'end'>) {
  if (end === undefined) return <span class="mark current">holds</span>
  const { reason, by, why } = end
  return (
    <>
      <Mark word={reason} />
      {by !== undefined && (
        <span class="quiet by">
          {' '}
          by {by}
          {why !== undefined && `: ${why}`}
        </span>
      )}
    </>
  )
}

function HistoryRow({ span }: { readonly span: Span }) {
  const { holder, token, from, to, end } = span
  return (
    <tr>
      <td>
        <time title={fullTime(from)}>{timeOfDay(from)}</time>
      </td>
      <td class="holder">{holder}</td>
      <td class="token">#{token}</td>
      <td class="lasted">{formatSpan(to - from)}</td>
      <td>
        <EndMark end={end} />
      </td>
    </tr>
  )
}
