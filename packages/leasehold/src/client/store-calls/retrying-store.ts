import {
  type Busy,
  type Changed,
  type Claimed,
  type ClaimRequest,
  type Granted,
  type GrantRequest,
  type Guarantees,
  LeaseholdError,
  type LeaseId,
  type LeaseStore,
  type Observer,
  type Query,
  type Reading,
  type ReleaseRequest,
  type Renewed,
  type Revoked,
  type RevokeRequest,
  type UpdateRequest,
  type Watch,
  type WatchTarget,
} from '../../port/index.ts'
import type { ClientCore } from '../core.ts'
import { closedError, StoreCall } from './store-call.ts'
import { noAnswer, type TimeLimit } from './time-limit.ts'

/**
 * The store as recipes use it, for data that belongs to no hold: a session that outlives the
 * process that created it, a value that all processes share.
 *
 * A call that gets no answer in time is sent again, always the same request, so that it is carried
 * out once. After a few sends, or the time limit, it fails with `unknown-outcome`; a read, which
 * changes nothing, with `timeout`. A lease granted here is not kept: it lives for its ttl, or as long
 * as somebody renews it, and closing the client does not end it.
 */
export class RetryingStore implements Omit<LeaseStore, 'close'> {
  readonly #core: ClientCore
  readonly #limit: TimeLimit

  constructor(core: ClientCore, limit: TimeLimit) {
    this.#core = core
    this.#limit = limit
  }

  get guarantees(): Guarantees {
    return this.#core.store.guarantees
  }

  grant(request: GrantRequest): Promise<Granted | Busy> {
    // It outlives this process, so it must not end with the connection.
    const isTied = this.guarantees.ties ? false : undefined
    const named = this.#named({ tied: isTied, ...request })
    return this.#call('grant', (store) => store.grant(named))
  }

  renew(leases: readonly LeaseId[]): Promise<Renewed> {
    return this.#call('renew', (store) => store.renew(leases))
  }

  revoke(request: RevokeRequest): Promise<Revoked> {
    const named = this.#named(request)
    return this.#call('revoke', (store) => store.revoke(named))
  }

  claim(request: ClaimRequest): Promise<Claimed | Busy> {
    const named = this.#named(request)
    return this.#call('claim', (store) => store.claim(named))
  }

  release(request: ReleaseRequest): Promise<Changed> {
    const named = this.#named(request)
    return this.#call('release', (store) => store.release(named))
  }

  update(request: UpdateRequest): Promise<Changed> {
    const named = this.#named(request)
    return this.#call('update', (store) => store.update(named))
  }

  read<Q extends Query>(query: Q): Promise<Reading<Q>> {
    return this.#call('read', (store) => store.read(query))
  }

  watch(target: WatchTarget, observer: Observer): Watch {
    return this.#core.store.watch(target, observer)
  }

  #named<Request extends { readonly request?: string | undefined }>(request: Request): Request {
    const id = request.request ?? this.#core.requestId()
    return id === undefined ? request : { ...request, request: id }
  }

  #call<Answer>(method: CallName, send: (store: LeaseStore) => Promise<Answer>): Promise<Answer> {
    const core = this.#core
    if (core.closed) return Promise.reject(closedError())
    return new AwaitedCall(core, method, this.#limit, () => send(core.store)).start()
  }
}

type CallName = Exclude<keyof LeaseStore, 'guarantees' | 'watch' | 'close'>

/** A call whose caller waits for the answer, and gives up when it is overdue. */
class AwaitedCall<Answer> extends StoreCall<Answer, Answer> {
  readonly repeatable = true
  pointless = false
  override readonly limit: TimeLimit
  readonly #method: CallName
  readonly #send: () => Promise<Answer>

  constructor(core: ClientCore, method: CallName, limit: TimeLimit, send: () => Promise<Answer>) {
    super(core)
    this.limit = limit
    this.#method = method
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
    if (this.#method !== 'read' || error.outcome !== 'unknown') return error
    return new LeaseholdError(
      'timeout',
      `the store did not answer the read, which changed nothing: ${error.message}`,
      { cause: error },
    )
  }

  overdue(error: LeaseholdError): LeaseholdError {
    return this.failed(error)
  }

  override late(cause: LeaseholdError | undefined): LeaseholdError {
    const then = 'read the current state, or repeat the call'
    const isRead = this.#method === 'read'
    return noAnswer(
      `the ${this.#method}`,
      this.limit,
      isRead ? { isRead } : { isRead, then },
      cause,
    )
  }

  #end(): void {
    if (this.pointless) return
    this.pointless = true
    this.core.keepAlive.leave()
  }
}
