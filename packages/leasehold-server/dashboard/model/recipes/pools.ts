import type { Mirror } from '../mirror.ts'
import {
  AdaptiveTtl,
  definitionFrom,
  expectation,
  type HoldTimes,
  keysOf,
  type PoolStatus,
  poolSnapshot,
  poolStatusOf,
  type TtlChoice,
} from './recipe-functions.ts'

export interface KindView {
  readonly kind: string
  /** The histogram of hold times, in order. */
  readonly bars: readonly { readonly ms: number; readonly count: number }[]
  readonly seen: number
  /** The usual hold time in milliseconds. */
  readonly usual: number | undefined
}

export interface PoolView extends PoolStatus {
  readonly name: string
  readonly kinds: readonly KindView[]
}

/** The learnt hold times of one kind of work, and the resulting ttl. */
export interface LearntView {
  readonly kind: string
  readonly choice: TtlChoice
  readonly seen: number
}

export function poolNames(mirror: Mirror): readonly string[] {
  const names = mirror.internal.find('pool')?.names?.list() ?? []
  return names.filter((name) => mirror.keys.has(keysOf(name).definition))
}

/** A pool, computed from its keys; `undefined` if its definition cannot be read. */
export function poolOf(
  mirror: Mirror,
  name: string,
  now: number,
  untilOf: (lease: string) => number | undefined,
): PoolView | undefined {
  const keys = keysOf(name)
  const definition = definitionFrom(mirror.keys.get(keys.definition)?.claims[0]?.value)
  if (definition === undefined) return undefined
  const view = viewOf(mirror, keys.prefix)
  const snapshot = poolSnapshot(view as never, name, keys, definition)
  const untils = new Map<string, number>()
  for (const permit of snapshot.occupants) {
    const [key] = permit.keys
    const lease = key === undefined ? undefined : mirror.keys.get(key)?.claims[0]?.lease
    const until = lease === undefined ? undefined : untilOf(lease)
    if (key !== undefined && until !== undefined) untils.set(key, until)
  }
  const status = poolStatusOf(snapshot, view as never, keys.notice, now, untils)
  return { ...status, name, kinds: kindsOf(snapshot.records) }
}

/** The part of a client's view that the pool functions use. */
function viewOf(mirror: Mirror, prefix: string) {
  const places = (key: string) => mirror.keys.get(key)?.claims ?? []
  const below = mirror.internal.find(`${prefix}notice`)?.names?.list() ?? []
  const notices = below.map((name) => `${prefix}notice/${name}`)
  return { places, keys: () => notices, age: () => 0 }
}

function kindsOf(records: readonly { readonly kinds: Readonly<Record<string, HoldTimes>> }[]) {
  const all = new Map<string, Record<number, number>>()
  for (const { kinds } of records) {
    for (const [kind, times] of Object.entries(kinds)) {
      const sum = all.get(kind) ?? {}
      for (const [bucket, count] of Object.entries(times)) {
        sum[Number(bucket)] = (sum[Number(bucket)] ?? 0) + count
      }
      all.set(kind, sum)
    }
  }
  return [...all].sort(([a], [b]) => (a < b ? -1 : 1)).map(([kind, times]) => kindOf(kind, times))
}

function kindOf(kind: string, times: HoldTimes): KindView {
  const buckets = Object.keys(times).map(Number)
  const [first, last] = [Math.min(...buckets), Math.max(...buckets)]
  const bars = Array.from({ length: last - first + 1 }, (_, at) => ({
    ms: 1000 * 2 ** ((first + at - 0.5) / 2),
    count: times[first + at] ?? 0,
  }))
  const expected = expectation(times)
  return { kind, bars, seen: Math.round(expected?.seen ?? 0), usual: expected?.rest }
}

/** The kinds of work with an adaptive ttl. */
export function learntOf(
  mirror: Mirror,
  ttl: { readonly min: number; readonly max: number; readonly step: number },
): LearntView[] {
  const names = mirror.internal.find('adaptive')?.names?.list() ?? []
  return names.flatMap((name) => {
    const text = mirror.keys.get(`adaptive/${name}`)?.claims[0]?.value
    if (text === undefined) return []
    const kind = text.split('\n')[1] ?? name
    const learner = AdaptiveTtl.fromText(text, { kind, store: ttl })
    return [{ kind, choice: learner.choose(), seen: learner.seen }]
  })
}
