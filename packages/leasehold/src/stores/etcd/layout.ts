import type { End, Key, Labels, LeaseId, Mode, Token } from '../../port/index.ts'
import type { KeyValue, RangeOp } from './messages.ts'

/**
 * What lies where in etcd, all under the store's prefix:
 *
 * - `l/<lease>`: a lease's record. It is tied to the etcd lease of that number, as are its claims.
 *   `l/<lease>/life` is tied to another etcd lease, which lives as long as this one may;
 *   `l/<lease>/signal` is put to tell whoever watches the lease.
 * - `k/<key>␀<claim>`: a claim. The revision of its creation is its token.
 *   `k/<key>␂`: the latest end of claims on that key, put in the same revision as the end.
 * - `e/<lease>`: how a lease ended that was ended by a call. `r/<request>`: an answered request.
 *
 * A key of ours has no control characters, so that what follows it cannot be mistaken for a part
 * of it, and the keys of a prefix are one range of etcd's keys, with all that belongs to them.
 */
const CLAIM = '\u0000'
const CLAIMS_END = '\u0001'
const LAST_END = '\u0002'

/** The digits of a lease's number: as many for each, so that no name begins with another. */
const LEASE_DIGITS = 11

export class Layout {
  readonly prefix: string
  readonly leases: string
  readonly #keys: string

  constructor(prefix: string) {
    this.prefix = prefix
    this.leases = `${prefix}l/`
    this.#keys = `${prefix}k/`
  }

  lease(id: string): string {
    return this.leases + id
  }

  life(id: string): string {
    return `${this.leases}${id}/life`
  }

  signal(id: string): string {
    return `${this.leases}${id}/signal`
  }

  ended(id: string): string {
    return `${this.prefix}e/${id}`
  }

  request(request: string): string {
    return `${this.prefix}r/${request}`
  }

  claim(key: Key, name: string): string {
    return this.#keys + key + CLAIM + name
  }

  /** The first and the end of all claims on a key. */
  line(key: Key): { readonly key: string; readonly end: string } {
    return { key: this.#keys + key + CLAIM, end: this.#keys + key + CLAIMS_END }
  }

  lastEnd(key: Key): string {
    return this.#keys + key + LAST_END
  }

  /** The first and the end of everything on the keys that begin with this. */
  under(prefix: string): { readonly key: string; readonly end: Buffer } {
    const key = this.#keys + prefix
    return { key, end: prefixEnd(key) }
  }

  /** The first after everything on this key, where the next key begins. */
  after(key: Key): string {
    return `${this.#keys}${key}\u0003`
  }

  isClaim(name: string): boolean {
    return name.startsWith(this.#keys) && name.includes(CLAIM)
  }

  /** Whether this is a lease's record, and not what stands beside it. */
  isRecord(name: string): boolean {
    return name.length === this.leases.length + LEASE_DIGITS
  }

  /** What a name under `k/` is about. */
  parse(name: string): { readonly key: Key; readonly claim: ClaimName | undefined } {
    const at = name.indexOf(CLAIM)
    if (at < 0) return { key: name.slice(this.#keys.length, -LAST_END.length), claim: undefined }
    return { key: name.slice(this.#keys.length, at), claim: parseClaimName(name.slice(at + 1)) }
  }

  /** The names of all claims on a key in order, without their values, up to a token. */
  lineNames(key: Key, upTo?: Token, revision?: number): RangeOp {
    const from = this.#keys + key
    return {
      do: 'range',
      key: from + CLAIM,
      end: from + CLAIMS_END,
      revision,
      byCreation: true,
      keysOnly: true,
      createdTo: upTo,
    }
  }

  get(name: string, revision?: number): RangeOp {
    return { do: 'range', key: name, revision }
  }
}

/** The first of all texts that come after those which begin with this one. */
export function prefixEnd(prefix: string): Buffer {
  const bytes = Buffer.from(prefix)
  // No byte of UTF-8 is 255, so that there is nothing to carry.
  bytes[bytes.length - 1]!++
  return bytes
}

/** How a claim is to stand in line is in its name, so that a line can be read without the values. */
export interface ClaimName {
  readonly name: string
  readonly mode: Mode
  readonly limit: number | undefined
  readonly lease: string
}

export function claimName(mode: Mode, limit: number | undefined, lease: string, nonce: string) {
  const standing = mode === 'exclusive' ? 'x' : `s${limit ?? ''}`
  return `${standing}.${lease}.${nonce}`
}

export function parseClaimName(name: string): ClaimName {
  const [standing = '', lease = ''] = name.split('.')
  const shared = standing.startsWith('s')
  const limit = shared && standing.length > 1 ? Number(standing.slice(1)) : undefined
  return { name, mode: shared ? 'shared' : 'exclusive', limit, lease }
}

/** A lease's id is its number and the revision of its grant, so that none is ever given twice. */
export function leaseIdOf(id: string, born: number): LeaseId {
  return `${id}.${born}`
}

export function leaseNumber(id: string): number {
  return Number.parseInt(id, 36)
}

export function leaseDigits(number: number): string {
  return number.toString(36).padStart(LEASE_DIGITS, '0')
}

const LEASE_ID = /^([0-9a-z]{11})\.([1-9]\d{0,15})$/

/** `undefined` where it is no id of ours. */
export function parseLeaseId(lease: LeaseId): { id: string; born: number } | undefined {
  const parts = LEASE_ID.exec(lease)
  return parts ? { id: parts[1]!, born: Number(parts[2]) } : undefined
}

/** A lease as it is kept. */
export interface LeaseRecord {
  readonly holder: string
  readonly ttl: number
  readonly grace: number
  readonly grantedAt: number
  readonly labels: Labels
  /** The end of its life: the etcd lease that measures it, when that is, and who set it and why. */
  readonly life: Life | undefined
  /** It is being ended in this way: no claims are added any more. */
  readonly ending: End | undefined
}

export interface Life {
  readonly lease: number
  readonly endOfLife: number
  readonly end: End | undefined
}

export function writeLease(record: LeaseRecord): string {
  const { holder, ttl, grace, grantedAt, labels, life, ending } = record
  const ends = life && [life.lease, life.endOfLife, writeEnd(life.end)]
  const span = ttl === Infinity ? 0 : ttl
  return JSON.stringify([holder, span, grace, grantedAt, labels, ends ?? 0, writeEnd(ending)])
}

export function readLease(text: string): LeaseRecord {
  const [holder, ttl, grace, grantedAt, labels, life, ending] = JSON.parse(text)
  return {
    ...{ holder, ttl: ttl || Infinity, grace, grantedAt, labels, ending: readEnd(ending) },
    life: life === 0 ? undefined : { lease: life[0], endOfLife: life[1], end: readEnd(life[2]) },
  }
}

/** A claim as it is kept. What is 0 in `born` was claimed by the grant itself. */
export interface ClaimRecord {
  readonly holder: string
  /** How long its lease lives without a renewal. */
  readonly span: number
  readonly claimedAt: number
  readonly born: number
  /** When it was last written. */
  readonly at: number
  readonly value: string | undefined
}

export function writeClaim({ holder, span, claimedAt, born, at, value }: ClaimRecord): string {
  const fields = [holder, span === Infinity ? 0 : span, claimedAt, born, at]
  return JSON.stringify(value === undefined ? fields : [...fields, value])
}

export function readClaim(text: string): ClaimRecord {
  const [holder, span, claimedAt, born, at, value] = JSON.parse(text)
  return { holder, span: span || Infinity, claimedAt, born, at, value }
}

/** Claims on one key that came to their end together. */
export interface LineEnd {
  readonly at: number
  readonly end: End
  readonly claims: readonly EndedClaim[]
  /** The revision of the end, where it was noted later, by somebody who saw it. */
  readonly revision: number | undefined
}

export interface EndedClaim {
  readonly token: Token
  readonly lease: LeaseId
  readonly holder: string
  readonly claimedAt: number
}

export function writeLineEnd({ at, end, claims, revision }: LineEnd): string {
  const each = claims.map(({ token, lease, holder, claimedAt }) => [
    token,
    lease,
    holder,
    claimedAt,
  ])
  return JSON.stringify([at, writeEnd(end), each, revision ?? 0])
}

export function readLineEnd(text: string): LineEnd {
  const [at, end, each, revision] = JSON.parse(text)
  const claims = each.map(([token, lease, holder, claimedAt]: [Token, LeaseId, string, number]) => {
    return { token, lease, holder, claimedAt }
  })
  return { at, end: readEnd(end)!, claims, revision: revision || undefined }
}

type WrittenEnd = 0 | [End['reason'], (string | null)?, (string | null)?]

export function writeEnd(end: End | undefined): WrittenEnd {
  if (end === undefined) return 0
  if (end.by === undefined && end.why === undefined) return [end.reason]
  return [end.reason, end.by ?? null, end.why ?? null]
}

export function readEnd(written: WrittenEnd): End | undefined {
  if (written === 0) return undefined
  const [reason, by, why] = written
  return { reason, by: by ?? undefined, why: why ?? undefined }
}

/** A claim in etcd, understood. */
export interface StoredClaim extends ClaimName, ClaimRecord {
  readonly key: Key
  readonly token: Token
  readonly leaseId: LeaseId
}

export function storedClaim(layout: Layout, kv: KeyValue): StoredClaim {
  const { key, claim } = layout.parse(kv.key)
  const record = readClaim(kv.value)
  const leaseId = leaseIdOf(claim!.lease, record.born || kv.created)
  return { ...claim!, ...record, key, token: kv.created, leaseId }
}
