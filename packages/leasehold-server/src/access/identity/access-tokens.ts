import { createHash, randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import {
  type Clock,
  invalid,
  isLeaseholdError,
  LeaseholdError,
  type LeaseId,
  type LeaseStore,
  show,
  type Timer,
  type Watch,
} from 'leasehold/port'
import { equalInConstantTime } from '../guard/lease-secrets.ts'
import { QUOTA_NAMES, type Quota } from '../quotas/quota.ts'
import { allows, parseRight, type Right, SERVER_PREFIX, writeRight } from '../rights.ts'
import type { ShownSession } from './browser-sessions.ts'
import type { Principal } from './principal.ts'

/** The keys of access tokens: this, and the name. */
export const TOKENS_PREFIX = `${SERVER_PREFIX}tokens/`
/** How to create an administrator. */
export const CREATE_ADMINISTRATOR = 'leasehold access-token create admin --right all:'
const FORM = /^lh_([A-Za-z0-9-]{1,64})_([A-Za-z0-9_-]{43})$/
const NAME = /^[A-Za-z0-9][A-Za-z0-9-]{0,63}$/
const RETRY_MS = 1000
/** The longest delay of a timer; it is set again afterwards. */
const TIMER_MAX_MS = 2 ** 31 - 1

export interface AccessTokenSpec {
  /** The name of its owner: letters, digits and dashes. Each name has one access token. */
  readonly name: string
  readonly rights: readonly Right[]
  readonly quota?: Quota | undefined
  /** When it expires, in milliseconds since 1970. Default: never. */
  readonly expiresAt?: number | undefined
  /** The common name of a client certificate that replaces the token, for mutual TLS. */
  readonly certificate?: string | undefined
}

export interface AccessTokenEntry extends AccessTokenSpec {
  readonly createdAt: number
}

interface Stored {
  readonly hash: string
  readonly rights: readonly string[]
  readonly quota: Quota
  readonly createdAt: number
  readonly expiresAt?: number | undefined
  readonly certificate?: string | undefined
}

interface Known {
  readonly entry: AccessTokenEntry
  readonly hash: string
  readonly lease: LeaseId
  readonly principal: Principal
}

interface Reading {
  readonly known: Map<string, Known>
  readonly unreadable: number
  readonly revision: number
}

export interface TokenChange {
  readonly adds?: AccessTokenSpec | undefined
  removes?(token: { readonly entry: AccessTokenSpec; readonly lease: LeaseId }): boolean
}

/** Whether its owner can create and revoke access tokens. */
function isAdministrator({ rights, expiresAt = Infinity }: AccessTokenSpec, now: number): boolean {
  return expiresAt > now && allows(rights, 'admin', TOKENS_PREFIX)
}

function isAdministered(entries: readonly AccessTokenSpec[], now: number): boolean {
  return entries.some((entry) => isAdministrator(entry, now))
}

/**
 * The access tokens of a server. They are stored as hashes in its store, so all servers of one store
 * accept the same tokens and see every change. While there is none, everybody may do everything; once
 * one exists, every caller needs one.
 */
export class AccessTokens {
  /** Called with a principal whose rights have changed, and without one after the first token. */
  changed: (principal: Principal | undefined) => void = () => {}
  readonly #store: LeaseStore
  readonly #clock: Clock
  #known = new Map<string, Known>()
  /** The number of entries that cannot be parsed, as from a later version. They give no access. */
  #unreadable = 0
  #watch: Watch | undefined = undefined
  #timer: Timer | undefined = undefined
  #closed = false
  /** The number of loads that were started, and the latest one that was applied. */
  #started = 0
  #applied = 0

  private constructor(store: LeaseStore, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  static async open(store: LeaseStore, clock: Clock): Promise<AccessTokens> {
    const tokens = new AccessTokens(store, clock)
    await tokens.#load()
    return tokens
  }

  /** Whether no access token exists, so that everybody may do everything. */
  get isEmpty(): boolean {
    return this.#known.size + this.#unreadable === 0
  }

  list(): readonly AccessTokenEntry[] {
    return [...this.#known.values()].map(({ entry }) => entry)
  }

  /** The owner of this access token. */
  byToken(token: string | undefined): Principal {
    if (token === undefined) {
      throw unauthenticated(
        'this server requires an access token: send it as Authorization: Bearer lh_...',
      )
    }
    const parts = FORM.exec(token)
    const known = parts === null ? undefined : this.#known.get(parts[1]!)
    // Compare even for an unknown name, so that the response time does not reveal the names.
    const same = equalInConstantTime(known?.hash ?? '', hashOf(parts?.[2] ?? ''))
    if (known === undefined || !same) throw unauthenticated('unknown access token')
    return this.#active(known)
  }

  /** The owner of this session, which is valid only for the token that it was started with. */
  bySession({ name, isOf }: ShownSession): Principal {
    const known = this.#known.get(name)
    if (known === undefined || !isOf(known.hash)) throw unauthenticated('sign in again')
    return this.#active(known)
  }

  /** The hash of a token, by the name of its owner. */
  hashOf(name: string): string | undefined {
    return this.#known.get(name)?.hash
  }

  /** The quota of a principal; `undefined` for a name without an access token. */
  quotaOf(name: string): Quota | undefined {
    return this.#known.get(name)?.principal.quota
  }

  /** The principal of a verified client certificate. */
  byCertificate(name: string): Principal {
    const all = [...this.#known.values()].filter(({ entry }) => entry.certificate === name)
    const [known, second] = all.filter(({ principal }) => principal.ended === undefined)
    if (second !== undefined) {
      throw unauthenticated(
        `the certificate ${show(name)} belongs to both ${show(known!.entry.name)} and ${show(second.entry.name)}: revoke one of their access tokens`,
      )
    }
    if (known !== undefined) return known.principal
    if (all[0] !== undefined) return this.#active(all[0])
    throw unauthenticated(`no access token has the certificate ${show(name)}`)
  }

  /** Whether access tokens exist, but none of them can create and revoke others. */
  get lacksAdministrator(): boolean {
    return !this.isEmpty && !isAdministered(this.list(), this.#clock.now())
  }

  /**
   * Why this change would leave access tokens without an administrator, who alone can create and
   * revoke them; `undefined` if it would not. It reads the store, because another server may have
   * changed the tokens just now.
   */
  async lockOut({ adds, removes }: TokenChange): Promise<string | undefined> {
    const { known, unreadable } = await this.#readAll()
    const before = [...known.values()]
    const after = before.filter((one) => one.entry.name !== adds?.name && !removes?.(one))
    const entries = [...after.map(({ entry }) => entry), ...(adds ? [adds] : [])]
    if (entries.length + unreadable === 0) return undefined
    if (isAdministered(entries, this.#clock.now())) return undefined
    if (adds === undefined) {
      // What cannot get worse is allowed: otherwise a token could never be revoked.
      if (!before.some(({ entry }) => isAdministrator(entry, this.#clock.now()))) return undefined
      return 'this is the last access token that can administer: afterwards nobody could create or revoke access tokens, and the others would remain'
    }
    return `${show(adds.name)} has no right to administer, and no other access token has: afterwards nobody could create or revoke access tokens`
  }

  /** Whether this is the lease of an access token. */
  isTokenLease(lease: LeaseId): boolean {
    return [...this.#known.values()].some((known) => known.lease === lease)
  }

  /** Creates an access token. It is returned only here. */
  async create(spec: AccessTokenSpec): Promise<string> {
    checkSpec(spec, this.#clock.now())
    const { name, rights, quota = {}, expiresAt, certificate } = spec
    const other = this.list().find((entry) => entry.certificate === certificate)
    if (certificate !== undefined && other !== undefined && other.name !== name) {
      throw invalid(
        `the certificate ${show(certificate)} already belongs to ${show(other.name)}: revoke that access token first, or use another certificate`,
      )
    }
    const secret = randomBytes(32).toString('base64url')
    const stored: Stored = {
      hash: hashOf(secret),
      rights: rights.map(writeRight),
      quota,
      createdAt: this.#clock.now(),
      expiresAt,
      certificate,
    }
    const claims = [{ key: TOKENS_PREFIX + name, value: JSON.stringify(stored) }]
    const granted = await this.#store.grant({
      holder: 'leasehold',
      ttl: Infinity,
      claims,
      ifFree: true,
    })
    if (granted.outcome === 'busy') {
      throw new LeaseholdError(
        'invalid-argument',
        `${show(name)} already has an access token: revoke it first, or use another name`,
      )
    }
    await this.#loadIfAllowed()
    return `lh_${name}_${secret}`
  }

  /** Revokes an access token and disconnects its clients. Returns whether it existed. */
  async revoke(name: string, by: string): Promise<boolean> {
    const known = this.#known.get(name)
    if (known === undefined) return false
    const target = { lease: known.lease }
    await this.#store
      .revoke({ target, by, why: 'access token revoked' })
      .catch((error: unknown) => {
        if (!isLeaseholdError(error, 'lease-ended')) throw error
      })
    await this.#loadIfAllowed()
    return true
  }

  close(): void {
    this.#closed = true
    this.#watch?.close()
    this.#timer?.cancel()
  }

  async #load(): Promise<void> {
    const load = ++this.#started
    const { known, unreadable, revision } = await this.#readAll()
    // A later load is newer, and its watch reports what follows.
    if (this.#closed || load < this.#applied) return
    this.#applied = load
    this.#replace(known, unreadable)
    this.#watchFrom(revision)
  }

  async #readAll(): Promise<Reading> {
    const known = new Map<string, Known>()
    let unreadable = 0
    let after: string | undefined
    let revision = 0
    for (let more = true; more; ) {
      const page = await this.#store.read({ prefix: TOKENS_PREFIX, after })
      revision ||= page.revision
      for (const { key, claims } of page.keys) {
        const [claim] = claims
        if (claim === undefined) continue
        const name = key.slice(TOKENS_PREFIX.length)
        const read = this.parse(name, claim.value ?? '', claim.lease)
        if (read === undefined) unreadable++
        else known.set(name, read)
      }
      more = page.more
      after = page.keys.at(-1)?.key
    }
    return { known, unreadable, revision }
  }

  /**
   * Over the network, a change may end the access of the caller itself: the first token ends it for
   * everybody, and a caller may revoke its own. The change is done, so the failed load is ignored.
   */
  async #loadIfAllowed(): Promise<void> {
    try {
      await this.#load()
    } catch (error) {
      if (!isLeaseholdError(error)) throw error
    }
  }

  /** Parses an entry; `undefined` if it is not valid. */
  parse(name: string, json: string, lease: LeaseId): Known | undefined {
    try {
      const stored = JSON.parse(json) as Stored
      const { hash, quota, createdAt, expiresAt, certificate } = stored
      const rights = stored.rights.map(parseRight)
      const before = this.#known.get(name)
      const principal =
        before?.lease === lease ? before.principal : { name, rights, quota, ended: undefined }
      return {
        ...{ hash, lease, principal },
        entry: { name, rights, quota, createdAt, expiresAt, certificate },
      }
    } catch {
      return undefined
    }
  }

  /** The principal of a token stays the same object, so that open connections see a change. */
  #replace(known: Map<string, Known>, unreadable: number): void {
    const wasEmpty = this.isEmpty
    const before = this.#known
    this.#known = known
    this.#unreadable = unreadable
    if (wasEmpty && !this.isEmpty) this.changed(undefined)
    for (const [name, { principal, lease, entry }] of before) {
      const now = known.get(name)
      if (now?.lease !== lease) {
        principal.ended = 'its access token was revoked'
        this.changed(principal)
      } else if (
        !isDeepStrictEqual([now.entry.rights, now.entry.quota], [entry.rights, entry.quota])
      ) {
        principal.rights = now.entry.rights
        principal.quota = now.entry.quota ?? {}
        this.changed(principal)
      }
    }
    this.#endExpired()
  }

  #endExpired(): void {
    const now = this.#clock.now()
    let next = Infinity
    for (const { entry, principal } of this.#known.values()) {
      const { expiresAt = Infinity } = entry
      if (expiresAt > now) next = Math.min(next, expiresAt)
      else if (principal.ended === undefined) {
        principal.ended = 'its access token has expired'
        this.changed(principal)
      }
    }
    this.#timer?.cancel()
    if (next === Infinity) return
    const at = Math.min(next, now + TIMER_MAX_MS)
    this.#timer = this.#clock.timer(at, () => this.#endExpired())
  }

  #watchFrom(revision: number): void {
    this.#watch?.close()
    const watch = this.#store.watch({ prefix: TOKENS_PREFIX, from: revision }, ({ type }) => {
      if (this.#watch !== watch || type === 'watching') return
      const later = type === 'interrupted' ? RETRY_MS : 0
      // The next load opens a new watch.
      watch.close()
      this.#watch = undefined
      this.#clock.timer(this.#clock.now() + later, () => void this.#reload())
    })
    this.#watch = watch
  }

  async #reload(): Promise<void> {
    try {
      if (!this.#closed) await this.#load()
    } catch {
      // The store is unavailable: the known tokens stay valid until it answers.
      this.#clock.timer(this.#clock.now() + RETRY_MS, () => void this.#reload())
    }
  }

  #active({ principal }: Known): Principal {
    if (principal.ended !== undefined) throw unauthenticated(principal.ended)
    return principal
  }
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url')
}

function checkSpec(spec: AccessTokenSpec, now: number): void {
  const { name, rights, quota = {}, expiresAt, certificate } = spec
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw invalid(`name is ${show(name)}: use up to 64 letters, digits and dashes`)
  }
  if (certificate === '')
    throw invalid('certificate is empty: use the common name, or leave it out')
  if (rights.length === 0) {
    throw invalid(`${show(name)} has no rights: use at least one, such as 'claim,read:jobs/'`)
  }
  for (const [limit, value] of Object.entries(quota)) {
    const known = (QUOTA_NAMES as readonly string[]).includes(limit)
    if (!known) throw invalid(`quota ${show(limit)} is unknown: use ${QUOTA_NAMES.join(', ')}`)
    if (value !== undefined && !(typeof value === 'number' && value >= 0)) {
      throw invalid(`quota ${limit} is ${show(value)}: it must be a number, 0 or more`)
    }
  }
  if (expiresAt !== undefined && !(expiresAt > now)) {
    throw invalid(`the access token of ${show(name)} would already have expired: use a later time`)
  }
}

function unauthenticated(message: string): LeaseholdError {
  return new LeaseholdError('unauthenticated', message)
}
