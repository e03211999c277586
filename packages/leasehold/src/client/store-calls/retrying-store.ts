import type {
  Busy,
  Changed,
  Claimed,
  ClaimRequest,
  Granted,
  GrantRequest,
  Guarantees,
  LeaseholdError,
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
} from '../../port/index.ts'
import type { ClientCore } from '../core.ts'
import { closedError, StoreCall } from './store-call.ts'

/**
 * The store as recipes use it, for data that belongs to no hold: a session that outlives the
 * process that created it, a value that all processes share.
 *
 * A call that gets no answer in time is sent again, always the same request, so that it is carried
 * out once. After a few sends it fails with `unknown-outcome`. A lease granted here is not kept: it
 * lives for its ttl, or as long as somebody renews it, and closing the client does not end it.
 */
export class RetryingStore implements Omit<LeaseStore, 'close'> {
  readonly #core: ClientCore

  constructor(core: ClientCore) {
    this.#core = core
  }

  get guarantees(): Guarantees {
    return this.#core.store.guarantees
  }

  grant(request: GrantRequest): Promise<Granted | Busy> {
    const named = this.#named(request)
    return this.#call((store) => store.grant(named))
  }

  renew(leases: readonly LeaseId[]): Promise<Renewed> {
    return this.#call((store) => store.renew(leases))
  }

  revoke(request: RevokeRequest): Promise<Revoked> {
    const named = this.#named(request)
    return this.#call((store) => store.revoke(named))
  }

  claim(request: ClaimRequest): Promise<Claimed | Busy> {
    const named = this.#named(request)
    return this.#call((store) => store.claim(named))
  }

  release(request: ReleaseRequest): Promise<Changed> {
    const named = this.#named(request)
    return this.#call((store) => store.release(named))
  }

  update(request: UpdateRequest): Promise<Changed> {
    const named = this.#named(request)
    return this.#call((store) => store.update(named))
  }

  read<Q extends Query>(query: Q): Promise<Reading<Q>> {
    return this.#call((store) => store.read(query))
  }

  watch(target: WatchTarget, observer: Observer): Watch {
    return this.#core.store.watch(target, observer)
  }

  #named<Request extends { readonly request?: string | undefined }>(request: Request): Request {
    const id = request.request ?? this.#core.requestId()
    return id === undefined ? request : { ...request, request: id }
  }

  #call<Answer>(send: (store: LeaseStore) => Promise<Answer>): Promise<Answer> {
    const core = this.#core
    if (core.closed) return Promise.reject(closedError())
    return new AwaitedCall(core, () => send(core.store)).start()
  }
}

/** A call whose caller waits for the answer, and gives up when it is overdue. */
class AwaitedCall<Answer> extends StoreCall<Answer, Answer> {
  readonly repeatable = true
  pointless = false
  readonly #send: () => Promise<Answer>

  constructor(core: ClientCore, send: () => Promise<Answer>) {
    super(core)
    this.#send = send
    core.keepAlive.enter()
  }

  send(): Promise<Answer> {
    return this.#send()
  }

  answered(answer: Answer): Answer {
    this.#end()
    return answer
  }

  failed(error: LeaseholdError): LeaseholdError {
    this.#end()
    return error
  }

  overdue(error: LeaseholdError): LeaseholdError {
    return this.failed(error)
  }

  #end(): void {
    if (this.pointless) return
    this.pointless = true
    this.core.keepAlive.leave()
  }
}
