import type { Tenure } from 'leasehold/port'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { placed, type Span, spansOf } from '../model/elections.ts'
import { fullTime, spoken, timeOfDay } from '../model/format.ts'
import { useLive } from './context.ts'
import { Mark, toneOf } from './small.tsx'

/** The time line begins with the first that is known, or so long ago at the least. */
const SHORTEST_MS = 60_000

/** Who held a key before, read again whenever somebody has lost it. */
export function useHistory(key: string | undefined): readonly Tenure[] | undefined {
  const { store, mirror, now } = useLive()
  const [tenures, setTenures] = useState<readonly Tenure[] | undefined>(undefined)
  const row = key === undefined ? undefined : mirror.keys.get(key)
  // A key that goes from hand to hand all the time is asked for at most twice a second.
  const moment = Math.floor(now() / 500)
  const front = useMemo(() => row?.claims[0]?.token ?? 0, [key, moment])
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

export interface HistoryProps {
  readonly name: string
  readonly tenures: readonly Tenure[] | undefined
  readonly what: string
}

/** Who held a key and when, as a band from then to now, and as a list. */
export function History({ name, tenures, what }: HistoryProps) {
  const { mirror, now } = useLive()
  const row = mirror.keys.get(name)
  const holder = row !== undefined && row.held > 0 ? row.claims[0] : undefined
  const current = holder && { ...holder, since: holder.heldSince ?? holder.claimedAt }
  const spans = spansOf(tenures ?? [], current, now())
  if (spans.length === 0) return <p class="quiet">Nothing is known of the past.</p>
  return (
    <div class="history">
      <Band spans={spans} now={now()} label={`${what} of ${name}`} />
      <ol reversed>
        {[...spans].reverse().map((span) => (
          <HistoryRow key={`${span.token} ${span.from}`} span={span} />
        ))}
      </ol>
    </div>
  )
}

export interface BandProps {
  readonly spans: readonly Span[]
  readonly now: number
  readonly label: string
}

/** Spans of time on a line; each says on being pointed at whose it was and how it ended. */
export function Band({ spans, now, label }: BandProps) {
  const begin = Math.min(now - SHORTEST_MS, spans[0]?.from ?? now)
  return (
    <div class="band-box">
      <div
        class="band"
        role="img"
        aria-label={`${label}: ${spans.length} times, the last by ${spans.at(-1)?.holder}`}
      >
        {spans.map((span) => {
          const { left, width } = placed(span, begin, now)
          const tone = span.end === undefined ? 'current' : toneOf(span.end.reason)
          return (
            <span
              key={`${span.token} ${span.from}`}
              class={`span ${tone}`}
              style={{ left: `${100 * left}%`, width: `${100 * width}%` }}
              title={`${span.holder} #${span.token}, ${spoken(span.to - span.from)}, ${span.end?.reason ?? 'now'}`}
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
    </div>
  )
}

function HistoryRow({ span }: { readonly span: Span }) {
  const { holder, token, from, to, end } = span
  return (
    <li>
      <time title={fullTime(from)}>{timeOfDay(from)}</time>
      <span class="holder">{holder}</span>
      <span class="token">#{token}</span>
      <span class="lasted">{spoken(to - from)}</span>
      {end === undefined ? <span class="mark current">holds</span> : <Mark word={end.reason} />}
      {end?.by !== undefined && (
        <span class="quiet by">
          by {end.by}
          {end.why !== undefined && `: ${end.why}`}
        </span>
      )}
    </li>
  )
}
