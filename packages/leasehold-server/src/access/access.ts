import { randomBytes } from 'node:crypto'
import {
  type Clock,
  LeaseholdError,
  type LeaseId,
  type LeaseStore,
  type Limits,
  show,
} from 'leasehold/port'
import { Accounts } from './accounts.ts'
import type { Audit, AuditEntry } from './audit.ts'
import { AuditedStore } from './audited-store.ts'
import { BrowserSessions, type ShownSession } from './browser-sessions.ts'
import { GuardedStore, type Surroundings } from './guarded-store.ts'
import { LimitedAudit } from './limited-audit.ts'
import { everybody, type Principal } from './principal.ts'
import type { Usage } from './quota.ts'
import { LeaseSecrets } from './secrets.ts'
import { TokenBook } from './token-book.ts'
import { type ServerActs, serverActs, withdrawWaiting } from './withdrawal.ts'

export interface AccessOptions {
  readonly store: LeaseStore
  readonly limits: Limits
  readonly audit: Audit
  readonly clock: Clock
  /** The key of the lease secrets. Servers that share a store must share it. */
  readonly secretsKey?: Buffer | undefined
  /** Whether everybody is let in while there is no token. Yes, if not given. */
  readonly openWithoutTokens?: boolean | undefined
}

/** A store that does not answer must not keep the connections of an ended token open for longer. */
const WITHDRAW_MS = 5000

/** What somebody shows to prove who they are. */
export interface Credentials {
  /** The value of the header Authorization. */
  readonly authorization?: string | undefined
  /** The common name of a client certificate that was verified, or its common names. */
  readonly certificate?: string | readonly string[] | undefined
  /**
   * The name by which a server on a loopback address was called, where that is another than its own.
   * A page on the internet can have its own name point to this machine, and then look to a browser
   * as if it came from here.
   */
  readonly misnamed?: string | undefined
  /** The address that they come from, for the audit. */
  readonly address?: string | undefined
  /** The session of a browser that has signed in with a token. */
  readonly session?: string | undefined
}

/** Somebody who is let in: the store as they may use it, until `ended` is called. */
export interface Admission {
  readonly principal: Principal
  readonly store: LeaseStore
  /** Who it is is known, and all that they do by force is written down by the store itself. */
  readonly isKnown: boolean
  /** What the server itself does with their leases, whatever they may do. */
  readonly acts: ServerActs
  /**
   * Called once when they may do nothing any more, after their waiting claims were withdrawn;
   * connections must then be closed.
   */
  ended: (error: LeaseholdError) => void
  /** The plain id of a lease that is theirs, as they showed by its secret; else nothing. */
  ownLease(given: LeaseId): LeaseId | undefined
  /** So many bytes of requests have come: the milliseconds for which they must wait. */
  payload(bytes: number): number
  /** They have left. */
  leave(): void
}

/** Who may come in, and with which rights: the one door of the server, whatever they come by. */
export class Access {
  readonly tokens: TokenBook
  readonly #around: Surroundings
  readonly #sessions: BrowserSessions
  readonly #everybody = everybody()
  readonly #openStore: LeaseStore
  readonly #openWithoutTokens: boolean
  readonly #audit: LimitedAudit
  readonly #accounts: Accounts
  readonly #inside = new Set<{ readonly admission: Admission; readonly guarded?: GuardedStore }>()

  private constructor(tokens: TokenBook, options: AccessOptions) {
    const { store, limits, clock, secretsKey = randomBytes(32), openWithoutTokens = true } = options
    const audit = new LimitedAudit(options.audit, clock)
    this.#audit = audit
    this.#openWithoutTokens = openWithoutTokens
    this.tokens = tokens
    this.#sessions = new BrowserSessions(secretsKey)
    this.#accounts = new Accounts(store, clock, (name) => tokens.quotaOf(name))
    const secrets = new LeaseSecrets(secretsKey)
    this.#around = { store, limits, audit, clock, secrets, accounts: this.#accounts }
    this.#openStore = new AuditedStore(store, audit)
    tokens.changed = (principal) => this.#changed(principal)
  }

  static async open(options: AccessOptions): Promise<Access> {
    return new Access(await TokenBook.open(options.store, options.clock), options)
  }

  /** How much each principal uses, as of the last count. */
  usage(): ReadonlyMap<string, Usage> {
    return this.#accounts.usage()
  }

  /** Counts what each principal has in the store, unless that was done a short time ago. */
  async countUsage(): Promise<void> {
    if (!this.tokens.isEmpty) await this.#accounts.refresh()
  }

  /** Lets somebody in, or refuses with `unauthenticated` or `forbidden`. */
  admit(credentials: Credentials): Admission {
    const principal = this.identify(credentials)
    if (principal === this.#everybody) return this.#enter(principal, this.#openStore)
    const guarded = new GuardedStore(this.#around, principal, credentials.address)
    return this.#enter(principal, guarded, guarded)
  }

  identify({ authorization, certificate, misnamed, session }: Credentials): Principal {
    if (this.tokens.isEmpty) {
      if (misnamed !== undefined) throw notHere(misnamed)
      if (!this.#openWithoutTokens) throw noTokenLeft()
      return this.#everybody
    }
    if (authorization === undefined && certificate !== undefined) {
      return this.tokens.byCertificate(onlyName(certificate))
    }
    const shown = authorization === undefined ? this.#opened(session) : undefined
    if (shown !== undefined) return this.tokens.bySession(shown)
    return this.tokens.byToken(bearerOf(authorization))
  }

  /** Begins the session of a browser for whoever shows a token; `undefined` where there are none. */
  signIn(authorization: string | undefined): string | undefined {
    if (this.tokens.isEmpty) return undefined
    const { name } = this.tokens.byToken(bearerOf(authorization))
    return this.#sessions.begin(name, this.tokens.hashOf(name)!, this.#around.clock.now())
  }

  /** Writes down what somebody did who had the power to. */
  record(entry: AuditEntry): void {
    this.#audit.record(entry)
  }

  close(): void {
    this.tokens.close()
    this.#audit.close()
  }

  #opened(session = ''): ShownSession | undefined {
    return this.#sessions.open(session, this.#around.clock.now())
  }

  #enter(principal: Principal, store: LeaseStore, guarded?: GuardedStore): Admission {
    const { secrets, clock } = this.#around
    const usage = guarded && this.#accounts.of(principal.name).usage
    const acts = guarded?.acts ?? serverActs(this.#around.store)
    const admission: Admission = {
      principal,
      store,
      acts,
      isKnown: guarded !== undefined,
      ended: () => {},
      ownLease: (given) => {
        if (guarded === undefined) return given
        const { lease, proven } = secrets.open(given)
        return proven ? lease : undefined
      },
      payload: (bytes) => usage?.payload(principal.quota, clock, bytes) ?? 0,
      leave: () => {
        if (!this.#inside.delete(member)) return
        void guarded?.close()
      },
    }
    const member = { admission, ...(guarded && { guarded }) }
    this.#inside.add(member)
    return admission
  }

  #changed(principal: Principal | undefined): void {
    const ended = principal === undefined ? 'this server wants a token now' : principal.ended
    const leaving: Admission[] = []
    for (const member of [...this.#inside]) {
      const { admission, guarded } = member
      if (admission.principal !== (principal ?? this.#everybody)) continue
      if (ended === undefined) guarded?.rightsChanged()
      else {
        this.#inside.delete(member)
        void guarded?.close()
        leaving.push(admission)
      }
    }
    if (ended === undefined) return
    const tell = () => {
      for (const admission of leaving) admission.ended(new LeaseholdError('unauthenticated', ended))
    }
    const waiting = principal && this.#accounts.of(principal.name).takeQueued()
    void this.#withdraw(waiting ?? [], ended).then(tell)
  }

  /** What cannot be withdrawn now is not renewed any more, and ends with its ttl. */
  #withdraw(waiting: Iterable<LeaseId>, why: string): Promise<void> {
    const { store, clock } = this.#around
    return new Promise((resolve) => {
      const timer = clock.timer(clock.now() + WITHDRAW_MS, resolve)
      withdrawWaiting(store, waiting, why)
        .catch(() => {})
        .finally(() => {
          timer.cancel()
          resolve()
        })
    })
  }
}

/** Which of several names a certificate means nobody can tell: it would be the first by accident. */
function onlyName(certificate: string | readonly string[]): string {
  if (typeof certificate === 'string') return certificate
  throw new LeaseholdError(
    'unauthenticated',
    `the client certificate has ${certificate.length} common names (${certificate.map(show).join(', ')}): use a certificate with one, or send a token`,
  )
}

/** A server that a network reaches is not opened to it by the end of its last token. */
function noTokenLeft(): LeaseholdError {
  return new LeaseholdError(
    'unauthenticated',
    "the last token of this server was revoked, and others than this machine reach it: stop it, and make a token with 'leasehold token create --store'",
  )
}

function notHere(name: string): LeaseholdError {
  return new LeaseholdError(
    'forbidden',
    `this server lets in everybody on its own machine, but was called ${show(name)}: call it localhost, or make a token`,
  )
}

function bearerOf(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined
  const [, token] = /^bearer ([^ ]+)$/i.exec(authorization) ?? []
  if (token !== undefined) return token
  throw new LeaseholdError(
    'unauthenticated',
    'the header Authorization is not of the form "Bearer lh_…"',
  )
}
