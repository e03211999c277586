import { randomBytes } from 'node:crypto'
import {
  type Clock,
  LeaseholdError,
  type LeaseId,
  type LeaseStore,
  type Limits,
  show,
} from 'leasehold/port'
import type { Audit, AuditEntry } from './audit/audit.ts'
import { auditedStore } from './audit/audited-store.ts'
import { LimitedAudit } from './audit/limited-audit.ts'
import { type GuardDependencies, GuardedStore } from './guard/guarded-store.ts'
import { LeaseSecrets } from './guard/lease-secrets.ts'
import { createServerActions, type ServerActions, withdrawWaiting } from './guard/server-actions.ts'
import { withTokenRules } from './guard/token-rules.ts'
import { AccessTokens } from './identity/access-tokens.ts'
import { BrowserSessions, type ShownSession } from './identity/browser-sessions.ts'
import { everybody, type Principal } from './identity/principal.ts'
import { Accounts } from './quotas/accounts.ts'
import { ownerOf } from './quotas/owner-label.ts'
import type { Usage } from './quotas/quota.ts'

export interface AccessOptions {
  readonly store: LeaseStore
  readonly limits: Limits
  readonly audit: Audit
  readonly clock: Clock
  /** The key that signs lease secrets. Servers that share a store must share it. */
  readonly secretsKey?: Buffer | undefined
  /** Whether everybody has access while no access token exists. Default: true. */
  readonly openWithoutAccessTokens?: boolean | undefined
}

/** The longest time that a slow store can delay closing the connections of a revoked token. */
const WITHDRAW_MS = 5000

/** What a request contains to authenticate its sender. */
export interface Credentials {
  /** The Authorization header. */
  readonly authorization?: string | undefined
  /** The common name, or names, of a verified client certificate. */
  readonly certificate?: string | readonly string[] | undefined
  /**
   * The host name of a request to a loopback address, if it is not a name of this machine. A page on
   * the internet can point its own name to this machine, and the browser then treats the server as
   * the page's origin.
   */
  readonly misnamed?: string | undefined
  /** The remote address, for the audit log. */
  readonly address?: string | undefined
  /** The session of a browser that signed in with an access token. */
  readonly session?: string | undefined
}

/** An authenticated caller, with the store as it may use it, until `ended` is called. */
export interface Admission {
  readonly principal: Principal
  readonly store: LeaseStore
  /** Whether the caller is authenticated. Its store then records forced changes itself. */
  readonly isKnown: boolean
  /** The server's own actions on the caller's leases, which need no rights. */
  readonly serverActions: ServerActions
  /**
   * Called once when the access token ends, after the caller's waiting claims were withdrawn. Its
   * connections must then be closed.
   */
  ended: (error: LeaseholdError) => void
  /**
   * Called when the rights of the access token have changed. The watches of the store notice it by
   * themselves; this is for what a gateway shows without them.
   */
  rightsChanged: () => void
  /** The plain id of a lease whose secret the caller has; otherwise `undefined`. */
  ownLease(given: LeaseId): LeaseId | undefined
  /**
   * The usable id of a lease that this caller was granted, on whatever connection; otherwise
   * `undefined`. For protocols whose clients cannot keep the secret of a lease: there, a lease
   * belongs to the access token that made it.
   */
  grantedLease(lease: LeaseId): Promise<LeaseId | undefined>
  /** Counts received bytes. Returns how many milliseconds they must wait. */
  payload(bytes: number): number
  /** The caller has left. */
  leave(): void
}

/** Authenticates every caller of the server, on every protocol, and gives it its store. */
export class Access {
  readonly tokens: AccessTokens
  readonly #dependencies: GuardDependencies
  readonly #sessions: BrowserSessions
  readonly #everybody = everybody()
  readonly #openStore: LeaseStore
  readonly #openWithoutAccessTokens: boolean
  readonly #audit: LimitedAudit
  readonly #accounts: Accounts
  readonly #inside = new Set<{ readonly admission: Admission; readonly guarded?: GuardedStore }>()

  private constructor(tokens: AccessTokens, options: AccessOptions) {
    const {
      store,
      limits,
      clock,
      secretsKey = randomBytes(32),
      openWithoutAccessTokens = true,
    } = options
    const audit = new LimitedAudit(options.audit, clock)
    this.#audit = audit
    this.#openWithoutAccessTokens = openWithoutAccessTokens
    this.tokens = tokens
    this.#sessions = new BrowserSessions(secretsKey)
    this.#accounts = new Accounts(store, clock, (name) => tokens.quotaOf(name))
    const secrets = new LeaseSecrets(secretsKey)
    const ruled = withTokenRules(store, tokens)
    this.#dependencies = { store: ruled, limits, audit, clock, secrets, accounts: this.#accounts }
    this.#openStore = auditedStore(ruled, audit)
    tokens.changed = (principal) => this.#changed(principal)
  }

  static async open(options: AccessOptions): Promise<Access> {
    return new Access(await AccessTokens.open(options.store, options.clock), options)
  }

  /** The usage of each principal at the last count. */
  usage(): ReadonlyMap<string, Usage> {
    return this.#accounts.usage()
  }

  /** Counts the leases and claims of each principal, unless the last count is recent. */
  async countUsage(): Promise<void> {
    if (!this.tokens.isEmpty) await this.#accounts.refresh()
  }

  /** Admits a caller. Throws `unauthenticated` or `forbidden`. */
  admit(credentials: Credentials): Admission {
    const principal = this.identify(credentials)
    if (principal === this.#everybody) return this.#enter(principal, this.#openStore)
    const guarded = new GuardedStore(this.#dependencies, principal, credentials.address)
    return this.#enter(principal, guarded, guarded)
  }

  identify({ authorization, certificate, misnamed, session }: Credentials): Principal {
    if (this.tokens.isEmpty) {
      if (misnamed !== undefined) throw notHere(misnamed)
      if (!this.#openWithoutAccessTokens) throw noTokenLeft()
      return this.#everybody
    }
    if (authorization === undefined && certificate !== undefined) {
      return this.tokens.byCertificate(onlyName(certificate))
    }
    const shown = authorization === undefined ? this.#opened(session) : undefined
    if (shown !== undefined) return this.tokens.bySession(shown)
    return this.tokens.byToken(bearerOf(authorization))
  }

  /** Starts a browser session for an access token; `undefined` if no access tokens exist. */
  signIn(authorization: string | undefined): string | undefined {
    if (this.tokens.isEmpty) return undefined
    const { name } = this.tokens.byToken(bearerOf(authorization))
    return this.#sessions.begin(name, this.tokens.hashOf(name)!, this.#dependencies.clock.now())
  }

  /** Records a forced change. */
  record(entry: AuditEntry): void {
    this.#audit.record(entry)
  }

  close(): void {
    this.tokens.close()
    this.#audit.close()
  }

  #opened(session = ''): ShownSession | undefined {
    return this.#sessions.open(session, this.#dependencies.clock.now())
  }

  #enter(principal: Principal, store: LeaseStore, guarded?: GuardedStore): Admission {
    const { secrets, clock } = this.#dependencies
    const usage = guarded && this.#accounts.of(principal.name).usage
    const serverActions = guarded?.serverActions ?? createServerActions(this.#dependencies.store)
    const admission: Admission = {
      principal,
      store,
      serverActions,
      isKnown: guarded !== undefined,
      ended: () => {},
      rightsChanged: () => {},
      ownLease: (given) => {
        if (guarded === undefined) return given
        const { lease, proven } = secrets.open(given)
        return proven ? lease : undefined
      },
      grantedLease: async (lease) => {
        if (guarded === undefined) return lease
        const { lease: found } = await this.#dependencies.store.read({ lease, limit: 1 })
        const isOwn = found !== undefined && ownerOf(found)?.name === principal.name
        return isOwn ? secrets.sign(lease) : undefined
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
    const ended =
      principal === undefined ? 'this server now requires an access token' : principal.ended
    const leaving: Admission[] = []
    for (const member of [...this.#inside]) {
      const { admission, guarded } = member
      if (admission.principal !== (principal ?? this.#everybody)) continue
      if (ended === undefined) {
        guarded?.rightsChanged()
        admission.rightsChanged()
      } else {
        this.#inside.delete(member)
        void guarded?.close()
        leaving.push(admission)
      }
    }
    if (ended === undefined) return
    const notify = () => {
      for (const admission of leaving) admission.ended(new LeaseholdError('unauthenticated', ended))
    }
    const waiting = principal && this.#accounts.of(principal.name).takeQueued()
    void this.#withdraw(waiting ?? [], ended).then(notify)
  }

  /** A claim that cannot be withdrawn now is no longer renewed, and ends with its ttl. */
  #withdraw(waiting: Iterable<LeaseId>, why: string): Promise<void> {
    const { store, clock } = this.#dependencies
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

/** Refuses a certificate with several names: choosing one would be arbitrary. */
function onlyName(certificate: string | readonly string[]): string {
  if (typeof certificate === 'string') return certificate
  throw new LeaseholdError(
    'unauthenticated',
    `the client certificate has ${certificate.length} common names (${certificate.map(show).join(', ')}): use a certificate with one, or send an access token`,
  )
}

/** Revoking the last access token must not open a server to its network. */
function noTokenLeft(): LeaseholdError {
  return new LeaseholdError(
    'unauthenticated',
    "the last access token of this server was revoked, and other machines can reach it. Stop it and create one with 'leasehold access-token create --store'",
  )
}

function notHere(name: string): LeaseholdError {
  return new LeaseholdError(
    'forbidden',
    `this server serves everybody on its own machine, but was called ${show(name)}: use localhost, or create an access token`,
  )
}

function bearerOf(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined
  const [, token] = /^bearer ([^ ]+)$/i.exec(authorization) ?? []
  if (token !== undefined) return token
  throw new LeaseholdError('unauthenticated', 'the Authorization header must be "Bearer lh_…"')
}
