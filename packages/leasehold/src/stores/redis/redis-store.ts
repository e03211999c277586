import {
  type Busy,
  type Changed,
  type Claimed,
  type ClaimRequest,
  type ClaimSpec,
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
  changed,
  claimed,
  granted,
  historyReading,
  keyReading,
  leaseReading,
  leasesReading,
  prefixReading,
  renewed,
  revoked,
} from './calls/answers.ts'
import { Calls } from './calls/calls.ts'
import { escaped, modeField, optional, span, US } from './calls/fields.ts'
import { type Connection, connectionOf, needsSingle, type RedisClient } from './client.ts'
import { closedError } from './faults.ts'
import { guaranteesOf, inspect } from './guarantees.ts'
import { type RedisStoreOptions, type Settings, settingsOf } from './options.ts'
import { Watches } from './watches/watches.ts'

/** Leases in one run: Redis does nothing else in the meantime. */
const RENEWED_AT_ONCE = 1000
const PAGE_DEFAULT = 1000

/**
 * A store in Redis 7 or Valkey, with the caller's own client of `ioredis` or `redis`. Closing the
 * store does not close the client. The second connection, for messages, is made by `duplicate()`.
 *
 * Fulfilled when Redis has answered. Refused if Redis could evict the store's data.
 */
export async function redisStore(
  client: RedisClient,
  options: RedisStoreOptions = {},
): Promise<LeaseStore> {
  const settings = settingsOf(options)
  const connection = connectionOf(client)
  if (settings.replicas > 0 && !connection.wait) throw needsSingle(settings.replicas)
  const facts = await inspect(connection, settings)
  const store = new RedisStore(connection, settings, guaranteesOf(facts, settings))
  // The first call creates what does not exist yet, and returns the identity of the data.
  await store.read({ key: 'leasehold' })
  return store
}

class RedisStore implements LeaseStore {
  readonly guarantees: Guarantees
  readonly #settings: Settings
  readonly #calls: Calls
  readonly #watches: Watches
  #closed = false

  constructor(connection: Connection, settings: Settings, guarantees: Guarantees) {
    this.guarantees = guarantees
    this.#settings = settings
    this.#calls = new Calls(connection, settings, ({ remaining, uid }) =>
      this.#watches.reported(remaining, uid),
    )
    this.#watches = new Watches(connection, this.#calls, settings)
  }

  grant(request: GrantRequest): Promise<Granted | Busy> {
    const obstacle = this.#obstacle(checkGrant(request, this.#settings.limits))
    if (obstacle) return Promise.reject(obstacle)
    const { holder, ttl, grace = 0, maxLife = Infinity, parent = '', labels, claims = [] } = request
    const values = [
      ...[escaped(holder), span(ttl), String(grace), span(maxLife), escaped(parent)],
      ...[labels ? JSON.stringify(labels) : '', request.ifFree ? '1' : ''],
      ...claims.flatMap(claimValues),
    ]
    return this.#change('g', request, values, true, (answer) =>
      this.#waiting(undefined, granted(answer), claims.length),
    )
  }

  async renew(leases: readonly LeaseId[]): Promise<Renewed> {
    const obstacle = this.#obstacle(checkRenew(leases, this.#settings.limits))
    if (obstacle) throw obstacle
    const parts: Promise<Renewed>[] = []
    for (let first = 0; first < leases.length; first += RENEWED_AT_ONCE) {
      const some = leases.slice(first, first + RENEWED_AT_ONCE)
      const ids = some.map((id) => (typeof id === 'string' ? escaped(id) : ''))
      const values = ['n', ...ids]
      parts.push(this.#calls.ask(values, (answer) => renewed(answer, some)))
    }
    const all = await Promise.all(parts)
    return {
      lost: all.flatMap(({ lost }) => lost),
      capped: all.flatMap(({ capped }) => capped),
    }
  }

  revoke(request: RevokeRequest): Promise<Revoked> {
    const obstacle = this.#obstacle(checkRevoke(request, this.#settings.limits))
    if (obstacle) return Promise.reject(obstacle)
    const { target, after = 0, by, why } = request
    const values = [...targetValues(target), String(after), optional(by), optional(why)]
    return this.#change('v', request, values, false, revoked)
  }

  claim(request: ClaimRequest): Promise<Claimed | Busy> {
    const obstacle = this.#obstacle(checkClaim(request, this.#settings.limits))
    if (obstacle) return Promise.reject(obstacle)
    const { lease, claims, ifFree, replaces } = request
    const read = (answer: string) => this.#waiting(lease, claimed(answer), claims.length)
    if (claims.length === 1 && isOurs(lease) && replaces === undefined)
      return this.#calls.write(oneClaim(request), true, read)
    const condition = replaces === undefined ? (ifFree ? '1' : '') : `=${replaces}`
    const values = [escaped(lease), condition, ...claims.flatMap(claimValues)]
    return this.#change('c', request, values, true, read)
  }

  release(request: ReleaseRequest): Promise<Changed> {
    const obstacle = this.#obstacle(checkRelease(request, this.#settings.limits))
    if (obstacle) return Promise.reject(obstacle)
    const { lease, keys, token } = request
    if (keys.length === 1 && isOurs(lease) && token >= TOKEN_MIN) {
      return this.#calls.write(oneRelease(request), false, changed)
    }
    const values = [escaped(lease), String(token), ...keys]
    return this.#change('r', request, values, false, changed)
  }

  update(request: UpdateRequest): Promise<Changed> {
    const obstacle = this.#obstacle(checkUpdate(request, this.#settings.limits))
    if (obstacle) return Promise.reject(obstacle)
    const { lease, key, token, value } = request
    const values = [escaped(lease), String(token), key, optional(value)]
    return this.#change('u', request, values, true, changed)
  }

  read<Q extends Query>(query: Q): Promise<Reading<Q>> {
    const obstacle = this.#obstacle(checkQuery(query, this.#settings.limits))
    if (obstacle) return Promise.reject(obstacle)
    return this.#read(query) as Promise<Reading<Q>>
  }

  watch(target: WatchTarget, observer: Observer): Watch {
    const obstacle = this.#obstacle(checkWatch(target, observer, this.#settings.limits))
    if (obstacle) throw obstacle
    if ('lease' in target) return this.#watches.watchLease(target.lease, observer)
    return this.#watches.watchPrefix(target.prefix, target.from, observer)
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#calls.close()
    this.#watches.close(closedError())
  }

  #obstacle(complaint: Complaint): LeaseholdError | undefined {
    if (this.#closed) return closedError()
    return complaint && LeaseholdError.from(complaint)
  }

  #change<Answer>(
    name: string,
    { request = '' }: { readonly request?: string | undefined },
    values: readonly string[],
    grows: boolean,
    read: (answer: string) => Answer,
  ): Promise<Answer> {
    return this.#calls.change(name, escaped(request), values, grows, read)
  }

  #waiting<A extends Claimed | Granted | Busy>(
    lease: LeaseId | undefined,
    answer: A,
    keys: number,
  ): A {
    if (answer.outcome !== 'busy' && !answer.holds) {
      this.#watches.waits(lease ?? (answer as Granted).lease, answer.token, keys)
    }
    return answer
  }

  #read(query: Query): Promise<Reading> {
    const calls = this.#calls
    const most = String(('limit' in query && query.limit) || PAGE_DEFAULT)
    if ('key' in query) return calls.ask(['k', query.key, most], keyReading)
    if ('prefix' in query) {
      const { prefix, after } = query
      const values = ['p', prefix, firstName(prefix, after), most]
      return calls.ask(values, prefixReading)
    }
    if ('lease' in query) return calls.ask(['l', escaped(query.lease), most], leaseReading)
    if ('history' in query) return calls.ask(['h', query.history], historyReading)
    // An id that is not one of ours sorts before all others.
    const after = /^\d{1,16}$/.test(query.after ?? '') ? `(${query.after}` : '-inf'
    return calls.ask(['a', after, most], leasesReading)
  }
}

/** Tokens have sixteen digits, and so have lease ids, which are revisions, too. */
const TOKEN_MIN = 1e15

function isOurs(lease: LeaseId): boolean {
  return lease.length === 16 && Number(lease) >= TOKEN_MIN
}

/** The most common calls, in a form with fixed positions for the fields. */
function oneClaim({ lease, claims: [claim], ifFree, request = '' }: ClaimRequest): string {
  const { key, mode, limit, value } = claim!
  const places = `C${ifFree ? '1' : '0'}${lease}${modeField(mode, limit)}`
  return `${places}${escaped(request)}${US}${key}${US}${optional(value)}`
}

function oneRelease({ lease, keys, token, request = '' }: ReleaseRequest): string {
  return `R${lease}${token}${escaped(request)}${US}${keys[0]}`
}

function claimValues({ key, mode, limit, value }: ClaimSpec): [string, string, string] {
  return [key, modeField(mode, limit), optional(value)]
}

function targetValues(target: RevokeRequest['target']): [string, string, string] {
  if ('lease' in target) return ['lease', escaped(target.lease), '']
  if ('parent' in target) return ['parent', escaped(target.parent), '']
  if ('prefix' in target) return ['prefix', target.prefix, '']
  if (target.token === undefined) return ['key', target.key, '']
  return ['claim', target.key, String(target.token)]
}

/** Redis sorts names by their bytes, which is the order of code points. */
function firstName(prefix: string, after = ''): string {
  return Buffer.compare(Buffer.from(after), Buffer.from(prefix)) > 0 ? `(${after}` : `[${prefix}`
}
