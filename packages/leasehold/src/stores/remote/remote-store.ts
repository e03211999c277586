import {
  type Busy,
  type Changed,
  type Claimed,
  type ClaimRequest,
  type Complaint,
  checkClaim,
  checkGrant,
  checkQuery,
  checkRelease,
  checkRenew,
  checkRevoke,
  checkUpdate,
  checkWatch,
  type Granted,
  type GrantRequest,
  type Guarantees,
  LeaseholdError,
  type LeaseId,
  type LeaseStore,
  type Limits,
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
import {
  readChanged,
  readClaimed,
  readGranted,
  readGuarantees,
  readObject,
  readReading,
  readRenewed,
} from './answers.ts'
import { Calls } from './calls.ts'
import { Link, type LinkOptions, unreachable } from './link.ts'
import { linkOptionsOf, type RemoteStoreOptions } from './options.ts'
import type { AnswerMessage, ServerMessage, Welcome } from './protocol.ts'
import {
  inGroups,
  writeClaim,
  writeObject,
  writeRelease,
  writeRenew,
  writeTie,
} from './requests.ts'
import { SecretKeeper } from './secret-keeper.ts'
import { Watches } from './watches.ts'

/**
 * A store on a server: what `leasehold serve` serves, as if it were here. Fulfilled when the server
 * was reached, so that its guarantees are known; refused with `timeout` where none was.
 *
 * All calls share one connection. When that breaks the store connects again by itself, and nothing
 * is lost by it that the server still has: a call with a request id, a renewal and a reading are
 * sent again; any other call that was under way has an unknown outcome; see `Watches` for watches.
 * A call that finds no connection waits for one, and is unknown after `timeout`.
 */
export async function remoteStore(
  url: string | URL,
  options: RemoteStoreOptions = {},
): Promise<LeaseStore> {
  const store = await RemoteStore.open(linkOptionsOf(url, options))
  const isKnown = options.token !== undefined || options.tls?.cert !== undefined
  return isKnown ? new SecretKeeper(store) : store
}

class RemoteStore implements LeaseStore {
  guarantees!: Guarantees
  #limits!: Limits
  readonly #options: LinkOptions
  readonly #link: Link
  readonly #calls: Calls
  readonly #watches: Watches
  /** Leases that are tied to this connection, to be tied to the next one too. */
  readonly #tied = new Set<LeaseId>()
  #opened: ((error?: LeaseholdError) => void) | undefined
  /** Why no call can be made any more. */
  #over: LeaseholdError | undefined
  #closing: Promise<void> | undefined

  static open(options: LinkOptions): Promise<LeaseStore> {
    const store = new RemoteStore(options)
    const { clock, timeout, url } = options
    return new Promise((resolve, reject) => {
      const timer = clock.timer(clock.now() + timeout, () => {
        const { trouble } = store.#link
        store.#opened!(unreachable(url.origin, trouble, timeout))
      })
      store.#opened = (error) => {
        timer.cancel()
        store.#opened = undefined
        if (error === undefined) resolve(store)
        else void store.#link.close().then(() => reject(error))
      }
      store.#link.connect()
    })
  }

  private constructor(options: LinkOptions) {
    const { clock, timeout } = options
    this.#options = options
    this.#link = new Link(options, {
      up: (welcome) => this.#up(welcome),
      down: () => this.#down(),
      answers: (messages) => this.#hear(messages),
      drained: () => this.#calls.drained(),
      refused: (error) => this.#refused(error),
    })
    this.#calls = new Calls(clock, timeout, this.#link)
    this.#watches = new Watches(this.#calls, clock, timeout)
  }

  grant(request: GrantRequest): Promise<Granted | Busy> {
    const obstacle = this.#obstacle(() => checkGrant(request, this.#limits))
    if (obstacle) return Promise.reject(obstacle)
    const id = this.#calls.nextId()
    const text = writeObject(id, 'grant', request)
    const answer = this.#calls.call(id, text, request.request !== undefined, readGranted)
    return this.#options.hello.tied === undefined ? answer : answer.then((it) => this.#tie(it))
  }

  renew(leases: readonly LeaseId[]): Promise<Renewed> {
    const obstacle = this.#obstacle(() => checkRenew(leases, this.#limits))
    if (obstacle) return Promise.reject(obstacle)
    const answer = this.#renew(leases)
    if (this.#tied.size === 0) return answer
    return answer.then((renewed) => {
      for (const { lease } of renewed.lost) this.#tied.delete(lease)
      return renewed
    })
  }

  /** Many leases take several messages, since the server bounds what one may hold. */
  async #renew(leases: readonly LeaseId[]): Promise<Renewed> {
    const groups = inGroups(leases, this.#calls.messageCharacters)
    const answers = await Promise.all(
      groups.map((group) => {
        const id = this.#calls.nextId()
        return this.#calls.call(id, writeRenew(id, group), true, readRenewed)
      }),
    )
    if (answers.length === 1) return answers[0]!
    const lost = answers.flatMap((answer) => answer.lost)
    return { lost, capped: answers.flatMap((answer) => answer.capped) }
  }

  revoke(request: RevokeRequest): Promise<Revoked> {
    const obstacle = this.#obstacle(() => checkRevoke(request, this.#limits))
    if (obstacle) return Promise.reject(obstacle)
    const id = this.#calls.nextId()
    const text = writeObject(id, 'revoke', request)
    const { target, after } = request
    if ('lease' in target && after === undefined) this.#tied.delete(target.lease)
    return this.#calls.call(id, text, request.request !== undefined, readObject<Revoked>)
  }

  claim(request: ClaimRequest): Promise<Claimed | Busy> {
    const obstacle = this.#obstacle(() => checkClaim(request, this.#limits))
    if (obstacle) return Promise.reject(obstacle)
    const id = this.#calls.nextId()
    const text = writeClaim(id, request)
    return this.#calls.call(id, text, request.request !== undefined, readClaimed)
  }

  release(request: ReleaseRequest): Promise<Changed> {
    const obstacle = this.#obstacle(() => checkRelease(request, this.#limits))
    if (obstacle) return Promise.reject(obstacle)
    const id = this.#calls.nextId()
    const text = writeRelease(id, request)
    return this.#calls.call(id, text, request.request !== undefined, readChanged)
  }

  update(request: UpdateRequest): Promise<Changed> {
    const obstacle = this.#obstacle(() => checkUpdate(request, this.#limits))
    if (obstacle) return Promise.reject(obstacle)
    const id = this.#calls.nextId()
    const text = writeObject(id, 'update', request)
    return this.#calls.call(id, text, request.request !== undefined, readChanged)
  }

  read<Q extends Query>(query: Q): Promise<Reading<Q>> {
    const obstacle = this.#obstacle(() => checkQuery(query, this.#limits))
    if (obstacle) return Promise.reject(obstacle)
    const id = this.#calls.nextId()
    const read = readReading as (message: AnswerMessage) => Reading<Q>
    return this.#calls.call(id, writeObject(id, 'read', query), true, read)
  }

  watch(target: WatchTarget, observer: Observer): Watch {
    const obstacle = this.#obstacle(() => checkWatch(target, observer, this.#limits))
    if (obstacle) throw obstacle
    return this.#watches.open(target, observer)
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const error = new LeaseholdError('closed', 'the store is closed: open it again')
    this.#over = error
    this.#watches.close(error)
    await this.#calls.close(error)
    await this.#link.close()
  }

  /**
   * Arguments are checked here as well as at the server: what JSON cannot say never leaves, and a
   * wrong call gets its answer at once.
   */
  #obstacle(check: () => Complaint): LeaseholdError | undefined {
    if (this.#over !== undefined) return this.#over
    const complaint = check()
    return complaint && LeaseholdError.from(complaint)
  }

  #up(welcome: Welcome): void {
    this.#limits = welcome.limits
    this.guarantees ??= readGuarantees(welcome, this.#options.url.origin)
    this.#calls.up(welcome.stream)
    for (const leases of inGroups([...this.#tied], this.#calls.messageCharacters)) {
      this.#calls.post(writeTie(this.#calls.nextId(), leases))
    }
    this.#watches.up()
    this.#opened?.()
  }

  #down(): void {
    const { trouble } = this.#link
    this.#calls.down(trouble)
    this.#watches.down(trouble)
    // Nothing is sent again for somebody who has left.
    if (this.#over !== undefined) void this.#calls.close(this.#over)
  }

  #refused(error: LeaseholdError): void {
    this.#opened?.(error)
    this.#over ??= error
    this.#watches.close(error)
    void this.#calls.close(error)
  }

  #hear(messages: readonly ServerMessage[]): void {
    for (const message of messages) {
      if (typeof message[0] === 'number') this.#calls.answer(message as AnswerMessage)
      else if (message[0] === 'notice') this.#watches.hear(message[1], message[2])
    }
    this.#calls.answered()
  }

  #tie(answer: Granted | Busy): Granted | Busy {
    if (answer.outcome === 'granted') this.#tied.add(answer.lease)
    return answer
  }
}
