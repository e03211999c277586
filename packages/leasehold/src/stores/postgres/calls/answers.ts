import {
  type Ahead,
  type Claim,
  type End,
  type Event,
  type KeyEntry,
  type Lease,
  LeaseholdError,
  type LeaseId,
  type Mode,
  type OwnClaim,
  type Refusal,
  show,
  type Tenure,
} from '../../../port/index.ts'

/**
 * The format of the database's answers: arrays, in the order in which the statements build them.
 * A string with a NUL, which PostgreSQL cannot store, is written with an escape.
 */
const ESCAPE = '\u0001'

export function toText(text: string): string {
  if (!text.includes('\0') && !text.includes(ESCAPE)) return text
  return text.replaceAll(ESCAPE, `${ESCAPE}1`).replaceAll('\0', `${ESCAPE}0`)
}

export function fromText(text: string): string {
  if (!text.includes(ESCAPE)) return text
  return text.replaceAll(`${ESCAPE}0`, '\0').replaceAll(`${ESCAPE}1`, ESCAPE)
}

/** The number in an id of ours, or 0, which no lease has. */
export function numberOf(id: LeaseId): number {
  return typeof id === 'string' && /^[1-9][0-9]{0,15}$/.test(id) ? Number(id) : 0
}

/** An infinite number arrives as a string. */
type Num = number | string

export type ClaimRow = readonly [
  key: string,
  token: number,
  lease: number,
  holder: string,
  standing: number,
  value: string | null,
  claimedAt: number,
  heldSince: number | null,
  until: Num,
]

export function readClaim(row: ClaimRow): Claim {
  const [key, token, lease, holder, standing, value, claimedAt, heldSince, until] = row
  return {
    key,
    token,
    lease: String(lease),
    holder: fromText(holder),
    ...readMode(standing),
    value: readValue(value),
    claimedAt,
    heldSince: heldSince ?? undefined,
    until: Number(until),
  }
}

function readMode(standing: number): { mode: Mode; limit: number | undefined } {
  return standing === -1
    ? { mode: 'exclusive', limit: undefined }
    : { mode: 'shared', limit: standing || undefined }
}

function readValue(value: string | null): string | undefined {
  return value === null ? undefined : fromText(value)
}

export function readEnd(end: End | null): End | undefined {
  if (end === null) return undefined
  const { reason, by, why } = end
  return { reason, by: by && fromText(by), why: why && fromText(why) }
}

export type AheadRow = readonly [key: string, count: number, first: ClaimRow]

export function readAhead(rows: readonly AheadRow[]): Ahead[] {
  return rows.map(([key, count, first]) => ({ key, count, first: readClaim(first) }))
}

export type QueueRow = readonly [claims: ClaimRow[], holders: number, count: number]

export function readQueue([claims, holders, count]: QueueRow): Omit<KeyEntry, 'key'> {
  return { claims: claims.map(readClaim), holders, count }
}

export type LeaseRow = readonly [
  id: number,
  holder: string,
  ttl: Num,
  grace: number,
  labels: Record<string, string> | null,
  parent: number | null,
  grantedAt: number,
  renewedAt: number,
  until: Num,
  endOfLife: Num,
  claims: number,
  children: number,
]

export function readLease(row: LeaseRow): Lease {
  const [
    id,
    holder,
    ttl,
    grace,
    labels,
    parent,
    grantedAt,
    renewedAt,
    until,
    life,
    claims,
    children,
  ] = row
  return {
    id: String(id),
    holder: fromText(holder),
    ttl: Number(ttl),
    grace,
    labels: readLabels(labels),
    parent: parent === null ? undefined : String(parent),
    grantedAt,
    renewedAt,
    until: Number(until),
    endOfLife: Number(life),
    claims,
    children,
  }
}

function readLabels(labels: Record<string, string> | null): Record<string, string> {
  const entries = Object.entries(labels ?? {})
  return Object.fromEntries(entries.map(([name, value]) => [fromText(name), fromText(value)]))
}

export type TenureRow = readonly [
  token: number,
  holder: string,
  lease: number,
  heldSince: number,
  endedAt: number,
  end: End,
]

export function readTenure([token, holder, lease, heldSince, endedAt, end]: TenureRow): Tenure {
  return {
    token,
    holder: fromText(holder),
    lease: String(lease),
    heldSince,
    endedAt,
    end: readEnd(end)!,
  }
}

export type EventRow = readonly [
  revision: number,
  kind: 0 | 1 | 2 | 3 | 4,
  key: string,
  token: number,
  lease: number,
  holder: string,
  standing: number,
  value: string | null,
  end: End | null,
  at: number,
]

/** The events that one row stands for, by its kind: a claim that holds at once is one row. */
const KINDS = [['claimed'], ['updated'], ['removed'], ['held'], ['claimed', 'held']] as const

export function readEvents(row: EventRow): Event[] {
  const [revision, kind, key, token, lease, holder, standing, value, end, at] = row
  return KINDS[kind].map((type) => ({
    revision,
    type,
    key,
    token,
    lease: String(lease),
    holder: fromText(holder),
    ...readMode(standing),
    value: readValue(value),
    end: readEnd(end),
    at,
  }))
}

export type OwnRow = readonly [key: string, token: number, holds: boolean]

export function readOwn([key, token, holds]: OwnRow): OwnClaim {
  return { key, token, holds }
}

/** The refusal of a call, in the form of the statements. */
export type RefusalRow =
  | readonly ['no-lease', end: End | null]
  | readonly ['no-claim', key: string, first: number | null]
  | readonly ['key-full', key: string, count: number]
  | readonly ['lease-full', count: number, most: number]
  | readonly ['grant-full', most: number]
  | readonly ['children', most: number]
  | readonly ['deep', most: number]
  | readonly ['leases', most: number]

/** The parts of a call that a refusal mentions. */
export interface Asked {
  readonly lease?: LeaseId | undefined
  readonly token?: number | undefined
  readonly claims?: number | undefined
}

export function refusalOf(row: RefusalRow, asked: Asked): LeaseholdError {
  return LeaseholdError.from(row[0] === 'no-lease' ? noLease(row[1], asked) : refusal(row, asked))
}

function noLease(ended: End | null, { lease }: Asked): Refusal {
  const end = readEnd(ended)
  if (end === undefined) {
    const message = `there is no lease ${show(lease)}: it never existed, or it ended long ago. Take a new one.`
    return { code: 'lease-not-found', message }
  }
  const by = end.by ? ` by ${end.by}` : ''
  const why = end.why ? `, because ${end.why}` : ''
  const message = `lease ${lease} has ended: ${end.reason}${by}${why}. Take a new one.`
  return { code: 'lease-ended', message, end }
}

function refusal(row: Exclude<RefusalRow, readonly ['no-lease', unknown]>, asked: Asked): Refusal {
  const { lease, token, claims } = asked
  if (row[0] === 'no-claim') {
    const now = row[2] === null ? 'it has no claims' : `token ${row[2]} is first`
    const message = `lease ${lease} has no claim with token ${token} on ${show(row[1])}: it was released or removed (now ${now})`
    return { code: 'claim-not-found', message }
  }
  const messages = {
    'key-full': `key ${show(row[1])} has ${row[2]} claims, the maximum. Wait until some are released.`,
    'lease-full': `lease ${lease} has ${row[1]} claims; the maximum is ${row[2]}. Release some, or use another lease.`,
    'grant-full': `claims has ${claims} keys; the maximum per lease is ${row[1]}. Claim fewer keys, or use several leases.`,
    children: `lease ${lease} has ${row[1]} child leases, the maximum. Use another parent.`,
    deep: `lease ${lease} is at depth ${row[1]}, the maximum. Use a parent higher up.`,
    leases: `the store has ${row[1]} leases, the maximum. End some leases, or raise the limit.`,
  }
  return { code: 'limit-exceeded', message: messages[row[0]] }
}
