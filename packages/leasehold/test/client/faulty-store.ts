import type {
  Busy,
  Changed,
  Claimed,
  ClaimRequest,
  Clock,
  Granted,
  GrantRequest,
  Guarantees,
  LeaseId,
  LeaseStore,
  Observer,
  Query,
  Reading,
  ReleaseRequest,
  Renewed,
  Revoked,
  RevokeRequest,
  UpdateRequest,
  Watch,
  WatchTarget,
} from '../../src/port/index.ts'
import { LeaseholdError } from '../../src/port/index.ts'

/** The fault of one call; `undefined` for none. */
export interface Fault {
  /** Milliseconds on the way there, and on the way back. */
  readonly there?: number
  readonly back?: number
  readonly lost?: 'request' | 'reply'
  readonly error?: Error
}

export type CallName = 'grant' | 'renew' | 'revoke' | 'claim' | 'release' | 'update' | 'read'

/**
 * A store behind an unreliable connection: the test decides the fault of each call. To the client
 * it looks like another process, so calls can be late, lost or frozen.
 */
export class FaultyStore implements LeaseStore {
  readonly guarantees: Guarantees
  readonly calls: CallName[] = []
  readonly requests: (string | undefined)[] = []
  fault: (call: CallName) => Fault | undefined = () => undefined
  /** Notices wait while this is set, and are passed on in order when it is cleared. */
  readonly #inner: LeaseStore
  readonly #clock: Clock
  readonly #watches = new Set<Observer>()
  #frozen: (() => void)[] | undefined = undefined

  constructor(inner: LeaseStore, clock: Clock, inProcess = false) {
    this.#inner = inner
    this.#clock = clock
    this.guarantees = { ...inner.guarantees, inProcess }
  }

  /** Blocks both directions until `thaw`, which passes everything on in order. */
  freeze(): void {
    this.#frozen ??= []
  }

  thaw(): void {
    const waiting = this.#frozen ?? []
    this.#frozen = undefined
    for (const go of waiting) go()
  }

  /** Interrupts every watch. */
  interrupt(): void {
    const error = new LeaseholdError('unknown-outcome', 'the connection broke')
    for (const observer of [...this.#watches]) {
      this.#watches.delete(observer)
      observer({ type: 'interrupted', error })
    }
  }

  count(name: CallName): number {
    return this.calls.filter((call) => call === name).length
  }

  grant(request: GrantRequest): Promise<Granted | Busy> {
    this.requests.push(request.request)
    return this.#pass('grant', () => this.#inner.grant(request))
  }

  renew(leases: readonly LeaseId[]): Promise<Renewed> {
    return this.#pass('renew', () => this.#inner.renew(leases))
  }

  revoke(request: RevokeRequest): Promise<Revoked> {
    return this.#pass('revoke', () => this.#inner.revoke(request))
  }

  claim(request: ClaimRequest): Promise<Claimed | Busy> {
    this.requests.push(request.request)
    return this.#pass('claim', () => this.#inner.claim(request))
  }

  release(request: ReleaseRequest): Promise<Changed> {
    return this.#pass('release', () => this.#inner.release(request))
  }

  update(request: UpdateRequest): Promise<Changed> {
    return this.#pass('update', () => this.#inner.update(request))
  }

  read<Q extends Query>(query: Q): Promise<Reading<Q>> {
    return this.#pass('read', () => this.#inner.read(query))
  }

  watch(target: WatchTarget, observer: Observer): Watch {
    this.#watches.add(observer)
    const watch = this.#inner.watch(target, (notice) => {
      const notify = () => {
        if (this.#watches.has(observer)) observer(notice)
      }
      if (this.#frozen) this.#frozen.push(notify)
      else notify()
    })
    return {
      close: () => {
        this.#watches.delete(observer)
        watch.close()
      },
    }
  }

  close(): Promise<void> {
    return this.#inner.close()
  }

  async #pass<Answer>(name: CallName, call: () => Promise<Answer>): Promise<Answer> {
    this.calls.push(name)
    const fault = this.fault(name) ?? {}
    await this.#thawed()
    if (fault.error) throw fault.error
    if (fault.there) await this.#sleep(fault.there)
    if (fault.lost === 'request') return new Promise(() => {})
    const answer = await call().then(
      (value) => () => value,
      (error) => () => {
        throw error
      },
    )
    if (fault.lost === 'reply') return new Promise(() => {})
    if (fault.back) await this.#sleep(fault.back)
    await this.#thawed()
    return answer()
  }

  #thawed(): Promise<void> | undefined {
    if (this.#frozen === undefined) return undefined
    return new Promise((resolve) => this.#frozen?.push(resolve))
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.#clock.timer(this.#clock.now() + ms, resolve)
    })
  }
}
