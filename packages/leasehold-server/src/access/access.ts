import { randomBytes } from 'node:crypto'
import {
  type Clock,
  LeaseholdError,
  type LeaseId,
  type LeaseStore,
  type Limits,
  show,
} from 'leasehold/port'
import { Account } from './account.ts'
import type { Audit, AuditEntry } from './audit.ts'
import { AuditedStore } from './audited-store.ts'
import { BrowserSessions, type ShownSession } from './browser-sessions.ts'
import { GuardedStore, type Surroundings } from './guarded-store.ts'
import { everybody, type Principal } from './principal.ts'
import type { Usage } from './quota.ts'
import { LeaseSecrets } from './secrets.ts'
import { TokenBook } from './token-book.ts'

export interface AccessOptions {
  readonly store: LeaseStore
  readonly limits: Limits
  readonly audit: Audit
  readonly clock: Clock
  /** The key of the lease secrets. Servers that share a store must share it. */
  readonly secretsKey?: Buffer | undefined
}

/** What somebody shows to prove who they are. */
export interface Credentials {
  /** The value of the header Authorization. */
  readonly authorization?: string | undefined
  /** The common name of a client certificate that was verified. */
  readonly certificate?: string | undefined
  /**
   * The name by which a server on a loopback address was called, where that is another than its own.
   * A page on the internet can have its own name point to this machine, and then look to a browser
   * as if it came from here.
   */
  readonly misnamed?: string | undefined
  /** The session of a browser that has signed in with a token. */
  readonly session?: string | undefined
}

/** Somebody who is let in: the store as they may use it, until `ended` is called. */
export interface Admission {
  readonly principal: Principal
  readonly store: LeaseStore
  /** Who it is is known, and all that they do by force is written down by the store itself. */
  readonly isKnown: boolean
  /** Called once when they may do nothing any more; connections must then be closed. */
  ended: (error: LeaseholdError) => void
  /** The plain id of a lease that is theirs, as they showed by its secret; else nothing. */
  ownLease(given: LeaseId): LeaseId | undefined
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
  readonly #accounts = new Map<string, Account>()
  readonly #inside = new Set<{ readonly admission: Admission; readonly guarded?: GuardedStore }>()

  private constructor(
    tokens: TokenBook,
    { store, limits, audit, clock, secretsKey = randomBytes(32) }: AccessOptions,
  ) {
    this.tokens = tokens
    this.#sessions = new BrowserSessions(secretsKey)
    this.#around = { store, limits, audit, clock, secrets: new LeaseSecrets(secretsKey) }
    this.#openStore = new AuditedStore(store, audit)
    tokens.changed = (principal) => this.#changed(principal)
  }

  static async open(options: AccessOptions): Promise<Access> {
    return new Access(await TokenBook.open(options.store, options.clock), options)
  }

  /** How much each principal uses. */
  usage(): ReadonlyMap<string, Usage> {
    return new Map([...this.#accounts].map(([name, { usage }]) => [name, usage]))
  }

  /** Lets somebody in, or refuses with `unauthenticated` or `forbidden`. */
  admit(credentials: Credentials): Admission {
    const principal = this.identify(credentials)
    if (principal === this.#everybody) return this.#enter(principal, this.#openStore)
    const account = this.#accountOf(principal.name)
    const guarded = new GuardedStore(this.#around, principal, account)
    return this.#enter(principal, guarded, guarded)
  }

  identify({ authorization, certificate, misnamed, session }: Credentials): Principal {
    if (this.tokens.isEmpty) {
      if (misnamed !== undefined) throw notHere(misnamed)
      return this.#everybody
    }
    if (authorization === undefined && certificate !== undefined) {
      return this.tokens.byCertificate(certificate)
    }
    const shown = authorization === undefined && session !== undefined && this.#opened(session)
    if (shown) return this.tokens.bySession(shown)
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
    this.#around.audit.record(entry)
  }

  close(): void {
    this.tokens.close()
  }

  #opened(session: string): ShownSession | undefined {
    return this.#sessions.open(session, this.#around.clock.now())
  }

  #enter(principal: Principal, store: LeaseStore, guarded?: GuardedStore): Admission {
    const admission: Admission = {
      principal,
      store,
      isKnown: guarded !== undefined,
      ended: () => {},
      ownLease: (given) => {
        if (guarded === undefined) return given
        const { lease, proven } = this.#around.secrets.open(given)
        return proven ? lease : undefined
      },
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
    for (const member of [...this.#inside]) {
      const { admission, guarded } = member
      const own = admission.principal
      if (principal !== undefined && own !== principal) continue
      if (principal === undefined && own !== this.#everybody) continue
      const ended = principal === undefined ? 'this server wants a token now' : own.ended
      if (ended === undefined) guarded?.rightsChanged()
      else {
        this.#inside.delete(member)
        admission.ended(new LeaseholdError('unauthenticated', ended))
        void guarded?.close()
      }
    }
  }

  #accountOf(name: string): Account {
    let account = this.#accounts.get(name)
    if (account === undefined) {
      account = new Account()
      this.#accounts.set(name, account)
    }
    return account
  }
}

function notHere(name: string): LeaseholdError {
  return new LeaseholdError(
    'forbidden',
    `this server lets in everybody on its own machine, but was called ${show(name)}: call it localhost, or make a token`,
  )
}

function bearerOf(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined
  const [scheme, token, more] = authorization.split(' ')
  if (scheme?.toLowerCase() === 'bearer' && token && more === undefined) return token
  throw new LeaseholdError(
    'unauthenticated',
    'the header Authorization is not of the form "Bearer lh_…"',
  )
}
