import type {
  Ahead,
  Busy,
  Capped,
  Changed,
  Claim,
  Claimed,
  End,
  Event,
  Granted,
  KeyEntry,
  KeyReading,
  Lease,
  LeaseId,
  LeaseReading,
  LeasesReading,
  Lost,
  OwnClaim,
  PrefixReading,
  Renewed,
  Revoked,
  Tenure,
} from '../../../port/index.ts'
import { endless, endOf, fromOptional, modeOf, RS, US, unescaped } from './fields.ts'
import { refusalOf } from './refusals.ts'

function claimOf(parts: readonly string[]): Claim {
  const [key, token, lease, holder, how, value, claimedAt, heldSince, until] = parts
  return {
    key: key!,
    token: Number(token),
    lease: lease!,
    holder: unescaped(holder!),
    ...modeOf(how!),
    value: fromOptional(value),
    claimedAt: Number(claimedAt),
    heldSince: heldSince === '' ? undefined : Number(heldSince),
    until: endless(until!),
  }
}

function aheadOf(text: string): Ahead {
  const [count, ...claim] = text.split(US)
  const first = claimOf(claim)
  return { key: first.key, count: Number(count), first }
}

function leaseOf(text: string): Lease {
  const [id, holder, ttl, grace, labels, parent, ...rest] = text.split(US)
  const [granted, renewed, until, endOfLife, claims, children] = rest
  return {
    id: id!,
    holder: unescaped(holder!),
    ttl: endless(ttl!),
    grace: Number(grace),
    labels: labels === '' ? {} : JSON.parse(labels!),
    parent: parent === '' ? undefined : parent,
    grantedAt: Number(granted),
    renewedAt: Number(renewed),
    until: endless(until!),
    endOfLife: endless(endOfLife!),
    claims: Number(claims),
    children: Number(children),
  }
}

/** The events that one stored string stands for: a claim that holds at once is stored once. */
const TYPES = {
  c: ['claimed'],
  C: ['claimed', 'held'],
  h: ['held'],
  u: ['updated'],
  r: ['removed'],
} as const

export function eventsOf(text: string): Event[] {
  const [revision, kind, key, token, lease, holder, how, value, at, end] = text.split(US)
  return TYPES[kind as keyof typeof TYPES].map((type) => ({
    revision: Number(revision),
    type,
    key: key!,
    token: Number(token),
    lease: lease!,
    holder: unescaped(holder!),
    ...modeOf(how!),
    value: fromOptional(value),
    end: endOf(end!),
    at: Number(at),
  }))
}

function tenureOf(text: string): Tenure {
  const { token, holder, lease, at, end } = eventsOf(text)[0]!
  const heldSince = Number(text.split(US)[10])
  return { token, holder, lease, heldSince, endedAt: at, end: end! }
}

/** The answer without the letter of its kind. Throws a refusal. */
function body(answer: string): string {
  if (answer.startsWith('X')) throw refusalOf(answer.split(US).slice(1))
  return answer.slice(1)
}

export function claimed(answer: string): Claimed | Busy {
  const text = body(answer)
  const kind = answer[0]
  if (kind === 'C') {
    const token = Number(text)
    return { outcome: 'claimed', revision: token, token, holds: true, ahead: [] }
  }
  const [number, ...rest] = text.split(RS)
  const ahead = rest.map(aheadOf)
  const revision = Number(number)
  if (kind === 'B') return { outcome: 'busy', revision, ahead }
  return { outcome: 'claimed', revision, token: revision, holds: false, ahead }
}

export function granted(answer: string): Granted | Busy {
  const kind = answer[0]
  if (kind === 'B') return claimed(answer) as Busy
  const [lease, ...rest] = body(answer).split(RS)
  const revision = Number(lease)
  const token = kind === 'E' ? 0 : revision
  const ahead = rest.map(aheadOf)
  return { outcome: 'granted', lease: lease!, revision, token, holds: kind !== 'H', ahead }
}

export function changed(answer: string): Changed {
  return { revision: Number(body(answer)) }
}

export function revoked(answer: string): Revoked {
  const [revision, leases, claims, more] = body(answer).split(US)
  return {
    revision: Number(revision),
    leases: Number(leases),
    claims: Number(claims),
    more: more === '1',
  }
}

/** The script identifies leases by their positions in the call. */
export function renewed(answer: string, ids: readonly LeaseId[]): Renewed {
  const lost: Lost[] = []
  const capped: Capped[] = []
  if (answer === 'N') return { lost, capped }
  const [losses, ...rest] = body(answer).split(RS)
  for (const [index, text] of rest.entries()) {
    const [place, second, third] = text.split(US)
    const lease = ids[Number(place) - 1]!
    if (index < Number(losses)) lost.push({ lease, end: endOf(second!) })
    else capped.push({ lease, remaining: Number(second), end: endOf(third!) })
  }
  return { lost, capped }
}

export function keyReading(answer: string): KeyReading {
  const [head, ...rest] = body(answer).split(RS)
  const [revision, holders, count] = head!.split(US).map(Number)
  const claims = rest.map((text) => claimOf(text.split(US)))
  return { revision: revision!, claims, holders: holders!, count: count! }
}

export function prefixReading(answer: string): PrefixReading {
  const [head, ...rest] = body(answer).split(RS)
  const [revision, more] = head!.split(US)
  const keys: KeyEntry[] = []
  for (let at = 0; at < rest.length; ) {
    const [key, holders, count, shown] = rest[at]!.split(US)
    const texts = rest.slice(at + 1, at + 1 + Number(shown))
    const claims = texts.map((text) => claimOf(text.split(US)))
    keys.push({ key: key!, claims, holders: Number(holders), count: Number(count) })
    at += 1 + Number(shown)
  }
  return { revision: Number(revision), keys, more: more === '1' }
}

export function leaseReading(answer: string): LeaseReading {
  if (answer.startsWith('Y')) {
    const { revision, end } = gone(answer)
    return { revision, lease: undefined, end, claims: [] }
  }
  const [revision, lease, ...rest] = body(answer).split(RS)
  const claims = rest.map((text) => claimOf(text.split(US)))
  return { revision: Number(revision), lease: leaseOf(lease!), end: undefined, claims }
}

export function leasesReading(answer: string): LeasesReading {
  const [head, ...rest] = body(answer).split(RS)
  const [revision, more] = head!.split(US)
  return { revision: Number(revision), leases: rest.map(leaseOf), more: more === '1' }
}

export function historyReading(answer: string): { revision: number; tenures: Tenure[] } {
  const [revision, ...rest] = body(answer).split(RS)
  return { revision: Number(revision), tenures: rest.map(tenureOf) }
}

export interface Standing {
  readonly revision: number
  /** `undefined` if the lease has ended. */
  readonly claims: readonly OwnClaim[] | undefined
  readonly end: End | undefined
}

export function standingOf(answer: string): Standing {
  if (answer.startsWith('Y')) return { ...gone(answer), claims: undefined }
  const [revision, ...rest] = body(answer).split(RS)
  const claims = rest.map((text) => {
    const [key, token, holds] = text.split(US)
    return { key: key!, token: Number(token), holds: holds === '1' }
  })
  return { revision: Number(revision), claims, end: undefined }
}

function gone(answer: string): { revision: number; end: End | undefined } {
  const [revision, end] = answer.slice(1).split(US)
  return { revision: Number(revision), end: endOf(end!) }
}

export interface EventPage {
  /** Everything up to this revision was reported. */
  readonly revision: number
  readonly more: boolean
  readonly events: readonly string[]
  /** The requested revision is no longer kept, but everything after this one is. */
  readonly oldest?: number
}

export function eventPage(answer: string): EventPage {
  if (answer.startsWith('O')) {
    return { revision: 0, more: false, events: [], oldest: Number(answer.slice(1)) }
  }
  const [head, ...events] = body(answer).split(RS)
  const [revision, more] = head!.split(US)
  return { revision: Number(revision), more: more === '1', events }
}
