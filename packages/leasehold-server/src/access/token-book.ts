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
import type { ShownSession } from './browser-sessions.ts'
import type { Principal } from './principal.ts'
import { QUOTA_NAMES, type Quota } from './quota.ts'
import { OWN_PREFIX, parseRight, type Right, writeRight } from './rights.ts'
import { sameText } from './secrets.ts'

const PREFIX = `${OWN_PREFIX}tokens/`
const FORM = /^lh_([A-Za-z0-9-]{1,64})_([A-Za-z0-9_-]{43})$/
const NAME = /^[A-Za-z0-9][A-Za-z0-9-]{0,63}$/
const RETRY_MS = 1000
/** A timer cannot wait longer; when it has, it looks again. */
const TIMER_MAX_MS = 2 ** 31 - 1

export interface TokenSpec {
  /** Who has it: letters, digits and dashes. One name has one token. */
  readonly name: string
  readonly rights: readonly Right[]
  readonly quota?: Quota | undefined
  /** When it ends, in milliseconds since 1970; never if not given. */
  readonly expiresAt?: number | undefined
  /** The common name of a client certificate that stands for the token, for mutual TLS. */
  readonly certificate?: string | undefined
}

export interface TokenEntry extends TokenSpec {
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
  readonly entry: TokenEntry
  readonly hash: string
  readonly lease: LeaseId
  readonly principal: Principal
}

/**
 * The tokens that a server accepts, kept in its store, hashed: several servers on one store accept
 * the same, and a change made through one reaches all. While there is none, everybody may do
 * everything; from the first on, nobody may do anything without one.
 */
export class TokenBook {
  /** Called with who has lost or changed its rights, and with nobody when the first token came. */
  changed: (principal: Principal | undefined) => void = () => {}
  readonly #store: LeaseStore
  readonly #clock: Clock
  #known = new Map<string, Known>()
  /** Entries that cannot be understood, as one that a later version wrote: they let nobody in. */
  #unreadable = 0
  #watch: Watch | undefined = undefined
  #timer: Timer | undefined = undefined
  #closed = false
  /** Readings that were begun, and the latest of them that was taken in. */
  #begun = 0
  #taken = 0

  private constructor(store: LeaseStore, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  static async open(store: LeaseStore, clock: Clock): Promise<TokenBook> {
    const book = new TokenBook(store, clock)
    await book.#load()
    return book
  }

  /** Whether there is no token, so that everybody may do everything. */
  get isEmpty(): boolean {
    return this.#known.size + this.#unreadable === 0
  }

  list(): readonly TokenEntry[] {
    return [...this.#known.values()].map(({ entry }) => entry)
  }

  /** Who has this token. */
  byToken(token: string | undefined): Principal {
    if (token === undefined) {
      throw unauthenticated('this server wants a token: send it as Authorization: Bearer lh_...')
    }
    const parts = FORM.exec(token)
    const known = parts === null ? undefined : this.#known.get(parts[1]!)
    // Compared even where nobody has this name, so that the time taken does not tell.
    const same = sameText(known?.hash ?? '', hashOf(parts?.[2] ?? ''))
    if (known === undefined || !same) throw unauthenticated('this token is not known here')
    return this.#unended(known)
  }

  /** Who signed in with this session: it holds for the very token that it was begun with. */
  bySession({ name, isOf }: ShownSession): Principal {
    const known = this.#known.get(name)
    if (known === undefined || !isOf(known.hash)) throw unauthenticated('sign in again')
    return this.#unended(known)
  }

  /** The hash of somebody's token. */
  hashOf(name: string): string | undefined {
    return this.#known.get(name)?.hash
  }

  /** What somebody may use at most; nothing for a name that has no token. */
  quotaOf(name: string): Quota | undefined {
    return this.#known.get(name)?.principal.quota
  }

  /** Who this client certificate, whose chain was verified, stands for. */
  byCertificate(name: string): Principal {
    const all = [...this.#known.values()].filter(({ entry }) => entry.certificate === name)
    const [known, second] = all.filter(({ principal }) => principal.ended === undefined)
    if (second !== undefined) {
      throw unauthenticated(
        `the certificate for ${show(name)} stands for ${show(known!.entry.name)} and for ${show(second.entry.name)}: revoke one of these tokens`,
      )
    }
    if (known !== undefined) return known.principal
    if (all[0] !== undefined) return this.#unended(all[0])
    throw unauthenticated(`nobody here has a certificate for ${show(name)}`)
  }

  /** Makes a token, and shows it this once. */
  async create(spec: TokenSpec): Promise<string> {
    checkSpec(spec, this.#clock.now())
    const { name, rights, quota = {}, expiresAt, certificate } = spec
    const other = this.list().find((entry) => entry.certificate === certificate)
    if (certificate !== undefined && other !== undefined && other.name !== name) {
      throw invalid(
        `the certificate ${show(certificate)} stands for ${show(other.name)} already: revoke that token first, or take another certificate`,
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
    const claims = [{ key: PREFIX + name, value: JSON.stringify(stored) }]
    const granted = await this.#store.grant({
      holder: 'leasehold',
      ttl: Infinity,
      claims,
      ifFree: true,
    })
    if (granted.outcome === 'busy') {
      throw new LeaseholdError(
        'invalid-argument',
        `${show(name)} has a token already: revoke it first, or take another name`,
      )
    }
    await this.#loadIfLetIn()
    return `lh_${name}_${secret}`
  }

  /** Ends a token; whoever uses it is cut off. Answers whether there was one. */
  async revoke(name: string, by: string): Promise<boolean> {
    const known = this.#known.get(name)
    if (known === undefined) return false
    const target = { lease: known.lease }
    await this.#store.revoke({ target, by, why: 'token revoked' }).catch((error: unknown) => {
      if (!isLeaseholdError(error, 'lease-ended')) throw error
    })
    await this.#loadIfLetIn()
    return true
  }

  close(): void {
    this.#closed = true
    this.#watch?.close()
    this.#timer?.cancel()
  }

  async #load(): Promise<void> {
    const reading = ++this.#begun
    const known = new Map<string, Known>()
    let unreadable = 0
    let after: string | undefined
    let revision = 0
    for (let more = true; more; ) {
      const page = await this.#store.read({ prefix: PREFIX, after })
      revision ||= page.revision
      for (const { key, claims } of page.keys) {
        const [claim] = claims
        if (claim === undefined) continue
        const name = key.slice(PREFIX.length)
        const read = this.#read(name, claim.value ?? '', claim.lease)
        if (read === undefined) unreadable++
        else known.set(name, read)
      }
      more = page.more
      after = page.keys.at(-1)?.key
    }
    // One that was begun later knows more, and its watch tells of what came after it.
    if (this.#closed || reading < this.#taken) return
    this.#taken = reading
    this.#replace(known, unreadable)
    this.#watchFrom(revision)
  }

  /**
   * Over the network the change that was just made may have cut off whoever made it: everybody by the
   * first token, oneself by revoking one's own. It is made all the same, and a token must be shown.
   */
  async #loadIfLetIn(): Promise<void> {
    try {
      await this.#load()
    } catch (error) {
      if (!isLeaseholdError(error)) throw error
    }
  }

  /** What an entry says; nothing if it cannot be understood. */
  #read(name: string, text: string, lease: LeaseId): Known | undefined {
    try {
      const stored = JSON.parse(text) as Stored
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

  /** The principal of a token stays the same object, so that whoever has it sees a change. */
  #replace(known: Map<string, Known>, unreadable: number): void {
    const wasEmpty = this.isEmpty
    const before = this.#known
    this.#known = known
    this.#unreadable = unreadable
    if (wasEmpty && !this.isEmpty) this.changed(undefined)
    for (const [name, { principal, lease, entry }] of before) {
      const now = known.get(name)
      if (now?.lease !== lease) {
        principal.ended = 'its token was revoked'
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
        principal.ended = 'its token has run out'
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
    const watch = this.#store.watch({ prefix: PREFIX, from: revision }, ({ type }) => {
      if (this.#watch !== watch || type === 'watching') return
      const later = type === 'interrupted' ? RETRY_MS : 0
      // The next reading opens another.
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
      // The store is away. What is known goes on to hold until it answers again.
      this.#clock.timer(this.#clock.now() + RETRY_MS, () => void this.#reload())
    }
  }

  #unended({ principal }: Known): Principal {
    if (principal.ended !== undefined) throw unauthenticated(principal.ended)
    return principal
  }
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url')
}

function checkSpec(spec: TokenSpec, now: number): void {
  const { name, rights, quota = {}, expiresAt, certificate } = spec
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw invalid(`name is ${show(name)}: use up to 64 letters, digits and dashes`)
  }
  if (certificate === '')
    throw invalid('certificate is empty: give the common name, or leave it out')
  if (rights.length === 0) {
    throw invalid(
      `${show(name)} would have no rights: give at least one, such as 'claim,read:jobs/'`,
    )
  }
  for (const [limit, value] of Object.entries(quota)) {
    const known = (QUOTA_NAMES as readonly string[]).includes(limit)
    if (!known) throw invalid(`quota ${show(limit)} is unknown: use ${QUOTA_NAMES.join(', ')}`)
    if (value !== undefined && !(typeof value === 'number' && value >= 0)) {
      throw invalid(`quota ${limit} is ${show(value)}: it must be a number that is not negative`)
    }
  }
  if (expiresAt !== undefined && !(expiresAt > now)) {
    throw invalid(`the token of ${show(name)} would have run out already: give a later time`)
  }
}

function unauthenticated(message: string): LeaseholdError {
  return new LeaseholdError('unauthenticated', message)
}
