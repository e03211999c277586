import type { Lease } from 'leasehold/port'
import type { ComponentChildren } from 'preact'
import { lapseOf } from '../../src/dashboard/feed-messages.ts'
import { countdown } from '../model/format.ts'
import { useLive } from './context.ts'
import { hrefTo } from './route.ts'

/** Matches the names that the demo uses. */
const DEMO = /(^|\/)demo[-/:]|^session\/demo\//

export function isDemo(name: string): boolean {
  return DEMO.test(name)
}

/** If no demo runs and nothing is left of one, its past events concern nobody. */
export function useDemoFilter(): ((holder: string) => boolean) | undefined {
  const { feed, mirror } = useLive()
  const isOver = feed.state?.demo === 'off' && ![...mirror.holders.keys()].some(isDemo)
  return isOver ? isDemo : undefined
}

export function DemoBadge({ name }: { readonly name: string }) {
  return isDemo(name) ? <span class="badge demo">demo</span> : null
}

export type Tone = 'ok' | 'warn' | 'bad' | 'quiet'

const TONES: Readonly<Record<string, Tone>> = {
  passing: 'ok',
  warning: 'warn',
  critical: 'bad',
  lapsed: 'warn',
  maintenance: 'quiet',
  drained: 'warn',
  gone: 'quiet',
  claimed: 'quiet',
  held: 'ok',
  updated: 'quiet',
  released: 'quiet',
  expired: 'warn',
  revoked: 'bad',
  broken: 'bad',
}

export function toneOf(word: string): Tone {
  return TONES[word] ?? 'quiet'
}

/** A word with a coloured mark. The colour is never the only sign. */
export function Mark({ word }: { readonly word: string }) {
  return <span class={`mark ${toneOf(word)}`}>{word}</span>
}

/**
 * The remaining time of a lease as a bar: its ttl, and after a notch its grace. A lease without an end
 * is full; an unknown lease is empty.
 */
export function DrainBar({
  lease,
  now,
}: {
  readonly lease: Lease | undefined
  readonly now: number
}) {
  if (lease === undefined) return <span class="drain unknown" />
  const { ttl, grace, until, endOfLife, grantedAt } = lease
  const left = until - now
  // A broken lease without heartbeats drains over its whole life.
  const whole = ttl === Infinity ? endOfLife - grantedAt : ttl + grace
  const part = left === Infinity ? 1 : Math.min(1, Math.max(0, left / whole))
  const isLapsed = grace > 0 && now > lapseOf(lease)
  const isCapped = endOfLife < Infinity && endOfLife - until < 1
  const tone = left <= 0 ? 'over' : isLapsed ? 'lapsed' : part < 0.25 ? 'low' : ''
  const text = left <= 0 ? 'ending' : isLapsed ? `lapsed, ${countdown(left)}` : countdown(left)
  return (
    <span class={`drain ${tone} ${isCapped ? 'capped' : ''}`}>
      <span class="drain-track" aria-hidden="true">
        <span class="drain-fill" style={{ transform: `scaleX(${part.toFixed(4)})` }} />
        {grace > 0 && whole < Infinity && (
          <span class="drain-notch" style={{ left: `${((100 * grace) / whole).toFixed(2)}%` }} />
        )}
      </span>
      <span class="drain-text">{text}</span>
    </span>
  )
}

export function HolderLink({ holder, lease }: { readonly holder: string; readonly lease: string }) {
  return (
    <a class="holder" href={hrefTo('leases', lease)}>
      {holder}
    </a>
  )
}

export function KeyLink({ name }: { readonly name: string }) {
  return (
    <a class="key" href={hrefTo('keys', name)}>
      {name}
    </a>
  )
}

/** The last characters of a long name that stay visible. */
const TAIL = 12
const LONG = 16

/**
 * A name in one line. If there is not enough room, it is cut in the middle: both ends tell names
 * apart. The whole name is in the tooltip, and is copied with a selection.
 */
export function ShortName({
  name,
  full = name,
}: {
  readonly name: string
  readonly full?: string
}) {
  const isLong = name.length > LONG
  return (
    <span class="key short" title={full}>
      {isLong ? (
        <>
          {/* A screen reader would pause between the two parts. */}
          <span class="unseen">{name}</span>
          <span class="short-head" aria-hidden="true">
            {name.slice(0, -TAIL)}
          </span>
          <span class="short-tail" aria-hidden="true">
            {name.slice(-TAIL)}
          </span>
        </>
      ) : (
        <span class="short-head">{name}</span>
      )}
    </span>
  )
}

export interface EmptyProps {
  readonly title: string
  readonly children?: ComponentChildren
}

/** Shown instead of an empty list: what would be here, and how to create it. */
export function Empty({ title, children }: EmptyProps) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  )
}

/** `Empty`, but only after everything was read. */
export function None(props: EmptyProps) {
  return useLive().isRead ? <Empty {...props} /> : <p class="quiet">Loading…</p>
}

/** A list of names and values. */
export function Facts({
  facts,
}: {
  readonly facts: readonly (readonly [string, ComponentChildren])[]
}) {
  return (
    <dl class="facts">
      {facts.map(([word, what]) => (
        <div key={word}>
          <dt>{word}</dt>
          <dd>{what}</dd>
        </div>
      ))}
    </dl>
  )
}
