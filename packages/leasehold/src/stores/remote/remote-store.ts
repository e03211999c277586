import {
  type Busy,
  type Changed,
  type Claimed,
  type ClaimRequest,
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
  type Refusal,
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
import { LeaseSecrets } from './lease-secrets.ts'
import {
  accessTokenOf,
  connectionOptionsOf,
  type RemoteStoreOptions,
  type ServerAddress,
} from './options.ts'
import type { AnswerMessage, ServerMessage, Welcome } from './protocol.ts'
import {
  inGroups,
  writeClaim,
  writeObject,
  writeRelease,
  writeRenew,
  writeTie,
} from './requests.ts'
import { ServerConnection, type ServerConnectionOptions, unreachable } from './server-connection.ts'
import { Watches } from './watches.ts'

/**
 * A store on a server: what `leasehold serve` serves. Fulfilled when the server was reached, so that
 * its guarantees are known; refused with `timeout` if it was not.
 *
 * All calls share one connection. When it breaks, the store connects again by itself, and nothing is
 * lost that the server still has: a call with a request id, a renewal and a reading are sent again;
 * any other call in flight has an unknown outcome; see `Watches` for watches. A call without a
 * connection waits for one, and its outcome is unknown after `timeout`.
 */
export async function remoteStore(
  url: ServerAddress,
  options: RemoteStoreOptions = {},
): Promise<LeaseStore> {
  const store = await RemoteStore.open(connectionOptionsOf(url, options))
  const isKnown = accessTokenOf(options) !== undefined || options.tls?.cert !== undefined
  return isKnown ? new LeaseSecrets(store) : store
}

/**
 * Arguments are checked here as well as on the server: what JSON cannot express is never sent, and an
 * invalid call is refused at once.
 */
class RemoteStore implements LeaseStore {
  guarantees!: Guarantees
  #limits!: Limits
  readonly #options: ServerConnectionOptions
  readonly #connection: ServerConnection
  readonly #calls: Calls
  readonly #watches: Watches
  /** Leases that are tied to this connection, and must be tied to the next one, too. */
  readonly #tied = new Set<LeaseId>()
  #opened: ((error?: LeaseholdError) => void) | undefined
  /** Why no call can be made any more. */
  #over: LeaseholdError | undefined
  #closing: Promise<void> | undefined

  static open(options: ServerConnectionOptions): Promise<LeaseStore> {
    const store = new RemoteStore(options)
    const { clock, timeout, urls } = options
    const where = urls.map(({ origin }) => origin).join(', ')
    return new Promise((resolve, reject) => {
      const timer = clock.timer(clock.now() + timeout, () => {
        const { cause } = store.#connection
        store.#opened!(unreachable(where, cause, timeout))
      })
      store.#opened = (error) => {
        timer.cancel()
        store.#opened = undefined
        if (error === undefined) resolve(store)
        else void store.#connection.close().then(() => reject(error))
      }
      store.#connection.connect()
    })
  }

  private constructor(options: ServerConnectionOptions) {
    const { clock, timeout } = options
    this.#options = options
    this.#connection = new ServerConnection(options, {
      up: (welcome) => this.#up(welcome),
      down: () => this.#down(),
      answers: (messages) => this.#hear(messages),
      drained: () => this.#calls.drained(),
      hasCalls: () => this.#calls.hasSent,
      refused: (error) => this.#refused(error),
    })
    this.#calls = new Calls(clock, timeout, this.#connection)
    this.#watches = new Watches(this.#calls, clock, timeout)
  }

  grant(request: GrantRequest): Promise<Granted | Busy> {
    const obstacle = this.#over ?? checkGrant(request, this.#limits)
    if (obstacle) return refuse(obstacle)
    const id = this.#calls.nextId()
    const isTied = request.tied ?? this.#options.tiesByDefault
    const text = writeObject(id, 'grant', { ...request, tied: isTied ? undefined : false })
    const answer = this.#calls.call(id, text, request.request !== undefined, readGranted)
    return isTied ? answer.then((it) => this.#tie(it)) : answer
  }

  renew(leases: readonly LeaseId[]): Promise<Renewed> {
    const obstacle = this.#over ?? checkRenew(leases, this.#limits)
    if (obstacle) return refuse(obstacle)
    const answer = this.#renew(leases)
    if (this.#tied.size === 0) return answer
    return answer.then((renewed) => {
      for (const { lease } of renewed.lost) this.#tied.delete(lease)
      return renewed
    })
  }

  /** Many leases take several messages, because the server limits the size of one. */
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
    const obstacle = this.#over ?? checkRevoke(request, this.#limits)
    if (obstacle) return refuse(obstacle)
    const id = this.#calls.nextId()
    const text = writeObject(id, 'revoke', request)
    const { target, after } = request
    if ('lease' in target && after === undefined) this.#tied.delete(target.lease)
    return this.#calls.call(id, text, request.request !== undefined, readObject<Revoked>)
  }

  claim(request: ClaimRequest): Promise<Claimed | Busy> {
    const obstacle = this.#over ?? checkClaim(request, this.#limits)
    if (obstacle) return refuse(obstacle)
    const id = this.#calls.nextId()
    const text = writeClaim(id, request)
    return this.#calls.call(id, text, request.request !== undefined, readClaimed)
  }

  release(request: ReleaseRequest): Promise<Changed> {
    const obstacle = this.#over ?? checkRelease(request, this.#limits)
    if (obstacle) return refuse(obstacle)
    const id = this.#calls.nextId()
    const text = writeRelease(id, request)
    return this.#calls.call(id, text, request.request !== undefined, readChanged)
  }

  update(request: UpdateRequest): Promise<Changed> {
    const obstacle = this.#over ?? checkUpdate(request, this.#limits)
    if (obstacle) return refuse(obstacle)
    const id = this.#calls.nextId()
    const text = writeObject(id, 'update', request)
    return this.#calls.call(id, text, request.request !== undefined, readChanged)
  }

  read<Q extends Query>(query: Q): Promise<Reading<Q>> {
    const obstacle = this.#over ?? checkQuery(query, this.#limits)
    if (obstacle) return refuse(obstacle)
    const id = this.#calls.nextId()
    const read = readReading as (message: AnswerMessage) => Reading<Q>
    return this.#calls.call(id, writeObject(id, 'read', query), true, read)
  }

  watch(target: WatchTarget, observer: Observer): Watch {
    const obstacle = this.#over ?? checkWatch(target, observer, this.#limits)
    if (obstacle) throw errorOf(obstacle)
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
    await this.#connection.close()
  }

  #up(welcome: Welcome): void {
    this.#limits = welcome.limits
    this.guarantees ??= readGuarantees(welcome, this.#connection.url.origin)
    this.#calls.up(welcome.stream)
    for (const leases of inGroups([...this.#tied], this.#calls.messageCharacters)) {
      this.#calls.post(writeTie(this.#calls.nextId(), leases))
    }
    this.#watches.up()
    this.#opened?.()
  }

  #down(): void {
    const { cause } = this.#connection
    this.#calls.down(cause)
    this.#watches.down(cause)
    // Nothing is sent again for a watch that was closed.
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
    this.#connection.answered()
  }

  #tie(answer: Granted | Busy): Granted | Busy {
    if (answer.outcome === 'granted') this.#tied.add(answer.lease)
    return answer
  }
}

function refuse(obstacle: LeaseholdError | Refusal): Promise<never> {
  return Promise.reject(errorOf(obstacle))
}

function errorOf(obstacle: LeaseholdError | Refusal): LeaseholdError {
  return obstacle instanceof LeaseholdError ? obstacle : LeaseholdError.from(obstacle)
}
