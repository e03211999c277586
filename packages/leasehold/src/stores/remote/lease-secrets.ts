import type {
  Busy,
  Changed,
  Claimed,
  ClaimRequest,
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
  RevokeTarget,
  UpdateRequest,
  Watch,
  WatchTarget,
} from '../../port/index.ts'

/** Separates a lease's id from its secret, if the server issues one. */
const SEPARATOR = '~'

/**
 * Keeps the secrets of leases. A server that authenticates issues a secret with each lease, after its
 * id, which is required to use the lease; others see only the id. Here the two are separated: callers
 * see the same id as everyone, and the secret is added to their requests.
 */
export class LeaseSecrets implements LeaseStore {
  readonly #store: LeaseStore
  readonly #secrets = new Map<LeaseId, LeaseId>()

  constructor(store: LeaseStore) {
    this.#store = store
  }

  get guarantees(): Guarantees {
    return this.#store.guarantees
  }

  async grant(request: GrantRequest): Promise<Granted | Busy> {
    const parent = request?.parent
    const answer = await this.#store.grant(
      parent === undefined ? request : { ...request, parent: this.#with(parent) },
    )
    if (answer.outcome === 'busy') return answer
    const at = answer.lease.lastIndexOf(SEPARATOR)
    if (at < 0) return answer
    const lease = answer.lease.slice(0, at)
    this.#secrets.set(lease, answer.lease)
    return { ...answer, lease }
  }

  async renew(leases: readonly LeaseId[]): Promise<Renewed> {
    const named = Array.isArray(leases) ? leases.map((lease) => this.#with(lease)) : leases
    const { lost, capped } = await this.#store.renew(named)
    const ended = lost.map((entry) => ({ ...entry, lease: without(entry.lease) }))
    for (const { lease } of ended) this.#secrets.delete(lease)
    return { lost: ended, capped: capped.map((it) => ({ ...it, lease: without(it.lease) })) }
  }

  async revoke(request: RevokeRequest): Promise<Revoked> {
    const target = request?.target
    if (!isObject(target)) return this.#store.revoke(request)
    const answer = await this.#store.revoke({ ...request, target: this.#target(target) })
    if ('lease' in target && request.after === undefined) this.#secrets.delete(target.lease)
    return answer
  }

  claim(request: ClaimRequest): Promise<Claimed | Busy> {
    return this.#store.claim(this.#signed(request))
  }

  release(request: ReleaseRequest): Promise<Changed> {
    return this.#store.release(this.#signed(request))
  }

  update(request: UpdateRequest): Promise<Changed> {
    return this.#store.update(this.#signed(request))
  }

  read<Q extends Query>(query: Q): Promise<Reading<Q>> {
    return this.#store.read(this.#signed(query))
  }

  watch(target: WatchTarget, observer: Observer): Watch {
    if (!isObject(target) || !('lease' in target)) return this.#store.watch(target, observer)
    const { lease } = target
    return this.#store.watch({ lease: this.#with(lease) }, (notice) => {
      if (notice.type === 'gone') this.#secrets.delete(lease)
      observer(notice)
    })
  }

  close(): Promise<void> {
    return this.#store.close()
  }

  /** An invalid value is passed on: the store says what is wrong with it. */
  #signed<Request extends object>(request: Request): Request {
    if (!isObject(request) || !('lease' in request)) return request
    return { ...request, lease: this.#with(request.lease as LeaseId) }
  }

  #with(lease: LeaseId): LeaseId {
    return this.#secrets.get(lease) ?? lease
  }

  #target(target: RevokeTarget): RevokeTarget {
    if ('lease' in target) return { lease: this.#with(target.lease) }
    if ('parent' in target) return { parent: this.#with(target.parent) }
    return target
  }
}

function without(lease: LeaseId): LeaseId {
  const at = lease.lastIndexOf(SEPARATOR)
  return at < 0 ? lease : lease.slice(0, at)
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
