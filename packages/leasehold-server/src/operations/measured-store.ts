import {
  type ClaimRequest,
  type Clock,
  type GrantRequest,
  type Guarantees,
  isLeaseholdError,
  type LeaseId,
  type LeaseStore,
  type Observer,
  type Query,
  type Reading,
  type ReleaseRequest,
  type Renewed,
  type RevokeRequest,
  type UpdateRequest,
  type WatchTarget,
} from 'leasehold/port'
import { Histogram } from './exposition.ts'

export type Operation = 'grant' | 'renew' | 'revoke' | 'claim' | 'release' | 'update' | 'read'

/**
 * A store that counts what it is asked, and times its changes: one at a time, which costs nothing
 * under load and tells the same, since changes that come together become durable together.
 */
export class MeasuredStore implements LeaseStore {
  readonly calls: Record<Operation, number> = {
    grant: 0,
    renew: 0,
    revoke: 0,
    claim: 0,
    release: 0,
    update: 0,
    read: 0,
  }
  /** Leases in all calls of `renew`. */
  renewals = 0
  /** Calls that failed, by code. */
  readonly failures = new Map<string, number>()
  /** From asking for a change to its answer, in seconds. */
  readonly commits = new Histogram()
  /** Why changes fail, while the last one did for want of storage. */
  trouble: string | undefined = undefined
  /** Told of every call of `renew`, while somebody wants to know. */
  renewed: ((leases: readonly LeaseId[]) => void) | undefined = undefined
  readonly #store: LeaseStore
  readonly #clock: Clock
  #timing = false

  constructor(store: LeaseStore, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  get guarantees(): Guarantees {
    return this.#store.guarantees
  }

  grant(request: GrantRequest) {
    this.calls.grant++
    return this.#change(this.#store.grant(request))
  }

  renew(leases: readonly LeaseId[]) {
    this.calls.renew++
    if (Array.isArray(leases)) this.renewals += leases.length
    const answer = this.#store.renew(leases)
    if (this.renewed !== undefined) this.#tellRenewed(leases, answer)
    return answer
  }

  revoke(request: RevokeRequest) {
    this.calls.revoke++
    return this.#change(this.#store.revoke(request))
  }

  claim(request: ClaimRequest) {
    this.calls.claim++
    return this.#change(this.#store.claim(request))
  }

  release(request: ReleaseRequest) {
    this.calls.release++
    return this.#change(this.#store.release(request))
  }

  update(request: UpdateRequest) {
    this.calls.update++
    return this.#change(this.#store.update(request))
  }

  read<Q extends Query>(query: Q): Promise<Reading<Q>> {
    this.calls.read++
    return this.#store.read(query)
  }

  watch(target: WatchTarget, observer: Observer) {
    return this.#store.watch(target, observer)
  }

  close(): Promise<void> {
    return this.#store.close()
  }

  /** Only what the store has renewed was a heartbeat. */
  #tellRenewed(leases: readonly LeaseId[], answer: Promise<Renewed>): void {
    answer.then(
      ({ lost }) => {
        const gone = new Set(lost.map(({ lease }) => lease))
        this.renewed?.(gone.size === 0 ? leases : leases.filter((lease) => !gone.has(lease)))
      },
      () => {},
    )
  }

  #change<Answer>(answer: Promise<Answer>): Promise<Answer> {
    if (this.#timing) {
      answer.catch(this.#failed)
      return answer
    }
    this.#timing = true
    const begun = this.#clock.now()
    answer.then(
      () => {
        this.#timing = false
        this.trouble = undefined
        this.commits.add((this.#clock.now() - begun) / 1000)
      },
      (error) => {
        this.#timing = false
        this.#failed(error)
      },
    )
    return answer
  }

  readonly #failed = (error: unknown): void => {
    const code = isLeaseholdError(error) ? error.code : 'unknown-outcome'
    this.failures.set(code, (this.failures.get(code) ?? 0) + 1)
    if (code.startsWith('storage-')) this.trouble = (error as Error).message
  }
}
