import type {
  Busy,
  Changed,
  Claimed,
  End,
  Event,
  Granted,
  Key,
  Labels,
  LeaseId,
  Refusal,
  Revoked,
  Tenure,
} from '../../port/index.ts'
import type { NodeData, Stat } from './wire/index.ts'

/** What a lease's node says. */
export interface LeaseRecord {
  readonly holder: string
  readonly ttl: number
  readonly grace: number
  readonly maxLife: number
  readonly labels?: Labels | undefined
  readonly parent?: LeaseId | undefined
  /** The store that keeps it. */
  readonly keeper: string
  /** How long one who sees its `a` node gone must go on seeing that before it may end the lease. */
  readonly linger: number
  /** A break. */
  readonly cap?: Cap | undefined
  /** Claims that were taken by force, the latest last. */
  readonly removed?: readonly Removal[] | undefined
}

export interface Cap {
  readonly after: number
  /** Counted from here on the ensemble's clock; 0 for when the node was set. */
  readonly at: number
  readonly by?: string | undefined
  readonly why?: string | undefined
}

export interface Removal {
  readonly key: Key
  readonly token: number
  readonly end: End
  /** 0 for the transaction that wrote this record. */
  readonly revision: number
}

/** What a claim's node says; the rest is in its name. */
export interface ClaimRecord {
  readonly holder: string
  readonly value?: string | undefined
  /** How long its lease lives without a renewal, grace included. */
  readonly span: number
}

/** What a key's node says: who held it before, the latest first. `endedAt` 0 is when it was set. */
export interface KeyRecord {
  readonly tenures: readonly Tenure[]
}

/** An answer to be given again. A revision or token of -1 is the entry's own transaction. */
export type Remembered =
  | Granted
  | Claimed
  | Busy
  | Changed
  | Revoked
  | { readonly refusal: Refusal }

export type EventRecord = Omit<Event, 'revision' | 'at'>

/** What a node of the journal says. */
export interface Entry {
  readonly answer: Remembered
  /**
   * For claims, until it is known how they stood: where they are. Whoever asks again then looks
   * itself, and is told that they held where they are gone.
   */
  readonly open?: OpenClaim | undefined
  readonly events: readonly EventRecord[]
  /** Its events are in another entry of the same transaction. */
  readonly isToldByFirst?: boolean | undefined
  /** Leases whose end is remembered as long as this entry. */
  readonly ended?: readonly LeaseId[] | undefined
}

export interface OpenClaim {
  readonly claim: string
  readonly keys: readonly Key[]
}

/** Times that may be infinite, which JSON cannot say. */
const ENDLESS = new Set(['ttl', 'maxLife', 'until', 'endOfLife', 'span'])

export function encode(record: object): Buffer {
  const text = JSON.stringify(record)
  // What is infinite has become `null`, which is nowhere else; to look at each value takes far longer.
  if (!text.includes('null')) return Buffer.from(text)
  return Buffer.from(
    JSON.stringify(record, (_name, value) => (value === Infinity ? 'Infinity' : value)),
  )
}

export function decode<Record>(data: Buffer): Record {
  const text = data.toString()
  if (!text.includes('"Infinity"')) return JSON.parse(text) as Record
  return JSON.parse(text, restore) as Record
}

function restore(name: string, value: unknown): unknown {
  if (value === 'Infinity' && ENDLESS.has(name)) return Infinity
  // A label may have any name and any text, also these.
  if (name !== 'labels' || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value ?? {}).map(([label, text]) => [label, `${text}`]))
}

export const NOTHING = Buffer.alloc(0)

/** A key's record is written with each release: it is kept short. */
export function encodeTenures(tenures: readonly Tenure[]): Buffer {
  return encode(
    tenures.map((it) => [it.token, it.holder, it.lease, it.heldSince, it.endedAt, it.end]),
  )
}

type Row = [number, string, LeaseId, number, number, End]

export function keyRecord(node: NodeData | undefined): KeyRecord {
  if (!node || node.data.length === 0) return { tenures: [] }
  const tenures = decode<Row[]>(node.data).map(
    ([token, holder, lease, heldSince, endedAt, end]): Tenure => ({
      token,
      holder,
      lease,
      heldSince,
      endedAt,
      end,
    }),
  )
  return {
    tenures: tenures.map((each) => (each.endedAt ? each : { ...each, endedAt: node.stat.mtime })),
  }
}

/** An answer with the number of its transaction in it. */
export function numbered<A extends Remembered>(answer: A, zxid: number): A {
  if ('refusal' in answer) return answer
  const token = 'token' in answer && answer.token === -1 ? { token: zxid } : {}
  return { ...answer, ...token, revision: answer.revision === -1 ? zxid : answer.revision }
}

/** A lease's record as it can be written again: what its node's numbers said is put into it. */
export function settled(record: LeaseRecord, { mtime, mzxid }: Stat): LeaseRecord {
  const { cap, removed } = record
  return {
    ...record,
    ...(cap && { cap: { ...cap, at: cap.at || mtime } }),
    ...(removed && { removed: removed.map((it) => ({ ...it, revision: it.revision || mzxid })) }),
  }
}

/** When a lease's life ends, renewed or not, on the ensemble's clock. */
export function endOfLife(record: LeaseRecord, stat: Stat): number {
  const { cap, maxLife } = record
  const broken = cap ? (cap.at || stat.mtime) + cap.after : Infinity
  return Math.min(stat.ctime + maxLife, broken)
}
