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
} from '../port/index.ts'
import { carryOut, type Errand } from './call.ts'
import type { ClientCore } from './core.ts'
import { closedError } from './loss.ts'

/**
 * The store as recipes use it, for what no hold stands for: a session that outlives the process
 * that began it, a value that all processes share.
 *
 * A call that is not answered in time is sent again, always the same request, so that it is carried
 * out once; after a few tries it fails with `unknown-outcome`. What is granted here is not kept: it
 * lives until its ttl is over, or for as long as somebody renews it, and closing the client does
 * not end it.
 */
export class PatientStore implements Omit<LeaseStore, 'close'> {
  readonly #core: ClientCore

  constructor(core: ClientCore) {
    this.#core = core
  }

  get guarantees(): Guarantees {
    return this.#core.store.guarantees
  }

  grant(request: GrantRequest): Promise<Granted | Busy> {
    const named = this.#named(request)
    return this.#ask((store) => store.grant(named))
  }

  renew(leases: readonly LeaseId[]): Promise<Renewed> {
    return this.#ask((store) => store.renew(leases))
  }

  revoke(request: RevokeRequest): Promise<Revoked> {
    const named = this.#named(request)
    return this.#ask((store) => store.revoke(named))
  }

  claim(request: ClaimRequest): Promise<Claimed | Busy> {
    const named = this.#named(request)
    return this.#ask((store) => store.claim(named))
  }

  release(request: ReleaseRequest): Promise<Changed> {
    const named = this.#named(request)
    return this.#ask((store) => store.release(named))
  }

  update(request: UpdateRequest): Promise<Changed> {
    const named = this.#named(request)
    return this.#ask((store) => store.update(named))
  }

  read<Q extends Query>(query: Q): Promise<Reading<Q>> {
    return this.#ask((store) => store.read(query))
  }

  watch(target: WatchTarget, observer: Observer): Watch {
    return this.#core.store.watch(target, observer)
  }

  #named<Request extends { readonly request?: string | undefined }>(request: Request): Request {
    const id = request.request ?? this.#core.requestId()
    return id === undefined ? request : { ...request, request: id }
  }

  #ask<Answer>(send: (store: LeaseStore) => Promise<Answer>): Promise<Answer> {
    const core = this.#core
    if (core.closed) return Promise.reject(closedError())
    return new Promise((resolve, reject) => {
      carryOut(core, new Question(core, () => send(core.store), resolve, reject))
    })
  }
}

/** One call whose caller waits for the answer, and does without it when told that it is overdue. */
class Question<Answer> implements Errand<Answer> {
  readonly repeatable = true
  pointless = false
  readonly send: () => Promise<Answer>
  readonly #core: ClientCore
  readonly #resolve: (answer: Answer) => void
  readonly #reject: (error: LeaseholdError) => void

  constructor(
    core: ClientCore,
    send: () => Promise<Answer>,
    resolve: (answer: Answer) => void,
    reject: (error: LeaseholdError) => void,
  ) {
    this.#core = core
    this.send = send
    this.#resolve = resolve
    this.#reject = reject
    core.keepAlive.enter()
  }

  answered(answer: Answer): void {
    this.#end()
    this.#resolve(answer)
  }

  failed(error: LeaseholdError): void {
    this.#end()
    this.#reject(error)
  }

  overdue(error: LeaseholdError): void {
    this.failed(error)
  }

  #end(): void {
    if (this.pointless) return
    this.pointless = true
    this.#core.keepAlive.leave()
  }
}
