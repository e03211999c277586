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
  type RevokeTarget,
  type UpdateRequest,
  type Watch,
  type WatchTarget,
} from '../../port/index.ts'
import {
  type AheadRow,
  type Asked,
  numberOf,
  type RefusalRow,
  readAhead,
  refusalOf,
  toText,
} from './calls/answers.ts'
import { Calls, serverTimeoutOf } from './calls/calls.ts'
import { Readings } from './calls/readings.ts'
import { Renewals } from './calls/renewals.ts'
import type { PostgresClient } from './client.ts'
import { Database } from './database.ts'
import { CLOSED } from './faults.ts'
import { guaranteesOf } from './guarantees.ts'
import { prepareSchema } from './migrate.ts'
import { channelOf, type PostgresStoreOptions, type Settings, settingsOf } from './options.ts'
import { Sweeper } from './sweeper.ts'
import { ListenConnection } from './watches/listen-connection.ts'
import { Watches } from './watches/watches.ts'

/** How many rows one statement forgets at most. */
const TIDY = 5000

/**
 * A store in PostgreSQL 15 or later, with the caller's own client: a `Pool` of `pg`, or the `sql` of
 * postgres.js. Many processes may use one schema. Closing the store leaves the client open. Fulfilled
 * when the schema exists (see `migrate`) and, with `listen`, a notification has arrived.
 */
export async function postgresStore(
  client: PostgresClient,
  options: PostgresStoreOptions = {},
): Promise<LeaseStore> {
  const settings = settingsOf(client, options)
  const store = new PostgresStore(settings, await prepareSchema(settings))
  await store.open()
  return store
}

class PostgresStore implements LeaseStore {
  readonly guarantees: Guarantees
  readonly #settings: Settings
  readonly #database: Database
  readonly #calls: Calls
  readonly #renewals: Renewals
  readonly #readings: Readings
  readonly #sweeper: Sweeper
  readonly #watches: Watches
  readonly #listenConnection: ListenConnection | undefined
  #tidying = false
  #closing: Promise<void> | undefined

  constructor(settings: Settings, warnings: readonly string[]) {
    const { clock, random, timeout, limits, poll, listener, schema } = settings
    this.#settings = settings
    this.guarantees = guaranteesOf(settings, warnings)
    const database = new Database(settings)
    this.#database = database
    this.#sweeper = new Sweeper(database, clock, random, serverTimeoutOf(timeout))
    this.#calls = new Calls(database, clock, timeout, limits, {
      before: () => this.#watches.starting,
      deadline: (remaining, sweeper) => this.#sweeper.receive(remaining, sweeper),
      surplus: () => void this.#tidy(),
    })
    this.#renewals = new Renewals(database, clock, timeout)
    this.#readings = new Readings(database, limits.historyPerKey)
    const isPushed = listener && (() => this.#listenConnection!.isUp)
    this.#watches = new Watches({
      database,
      sweeper: this.#sweeper,
      clock,
      poll,
      timeout,
      isPushed,
    })
    this.#listenConnection =
      listener &&
      new ListenConnection({
        connection: listener,
        database,
        channel: channelOf(schema),
        clock,
        random,
        timeout,
        receive: (payload) => this.#receive(payload),
        restored: () => this.#watches.everything(),
      })
    database.onFailure = () => this.#listenConnection?.suspect()
  }

  async open(): Promise<void> {
    await this.#listenConnection?.open()
    await this.#sweeper.sweep()
    this.#watches.start()
  }

  async grant(request: GrantRequest): Promise<Granted | Busy> {
    this.#check(() => checkGrant(request, this.#settings.limits))
    const { holder, ttl, grace = 0, maxLife = Infinity, parent, labels, claims } = request
    const answer = await this.#calls.call<GrantRow>([
      'grant',
      requestOf(request),
      toText(holder),
      finite(ttl),
      grace,
      finite(maxLife),
      parent === undefined ? null : numberOf(parent),
      labels ? textLabels(labels) : null,
      request.ifFree === true,
      claims ? claims.map(specOf) : null,
    ])
    if (answer[0] === 'busy') return busyOf(answer)
    if (answer[0] !== 'granted') throw refusalOf(answer, { lease: parent, claims: claims?.length })
    const [outcome, revision, token, ahead] = answer
    const lease = String(revision)
    return { outcome, lease, revision, token, holds: ahead.length === 0, ahead: readAhead(ahead) }
  }

  async renew(leases: readonly LeaseId[]): Promise<Renewed> {
    this.#check(() => checkRenew(leases, this.#settings.limits))
    return this.#renewals.renew(leases)
  }

  async revoke(request: RevokeRequest): Promise<Revoked> {
    this.#check(() => checkRevoke(request, this.#settings.limits))
    const { target, by, why, after } = request
    const answer = await this.#calls.call<RevokedRow | RefusalRow>([
      'revoke',
      requestOf(request),
      ...targetOf(target),
      by === undefined ? null : toText(by),
      why === undefined ? null : toText(why),
      after ?? 0,
    ])
    if (answer[0] !== 'revoked') throw refusalOf(answer, askedOf(target))
    const [, revision, leases, claims, more] = answer
    return { revision, leases, claims, more }
  }

  async claim(request: ClaimRequest): Promise<Claimed | Busy> {
    this.#check(() => checkClaim(request, this.#settings.limits))
    const { lease, claims, ifFree, replaces } = request
    const answer = await this.#calls.call<ClaimedRow>([
      'claim',
      requestOf(request),
      numberOf(lease),
      ifFree === true,
      claims.map(specOf),
      replaces ?? null,
    ])
    if (answer[0] === 'busy') return busyOf(answer)
    if (answer[0] !== 'claimed') throw refusalOf(answer, { lease, token: replaces })
    const [outcome, revision, ahead] = answer
    const holds = ahead.length === 0
    return { outcome, revision, token: revision, holds, ahead: readAhead(ahead) }
  }

  async release(request: ReleaseRequest): Promise<Changed> {
    this.#check(() => checkRelease(request, this.#settings.limits))
    const { lease, keys, token } = request
    const call = ['release', requestOf(request), numberOf(lease), token, keys] as const
    return this.#change(call, { lease, token })
  }

  async update(request: UpdateRequest): Promise<Changed> {
    this.#check(() => checkUpdate(request, this.#settings.limits))
    const { lease, key, token, value } = request
    const text = value === undefined ? null : toText(value)
    const call = ['update', requestOf(request), numberOf(lease), token, key, text] as const
    return this.#change(call, { lease, token })
  }

  async read<Q extends Query>(query: Q): Promise<Reading<Q>> {
    this.#check(() => checkQuery(query, this.#settings.limits))
    return this.#readings.read(query)
  }

  watch(target: WatchTarget, observer: Observer): Watch {
    this.#check(() => checkWatch(target, observer, this.#settings.limits))
    if ('lease' in target) return this.#watches.watchLease(target.lease, observer)
    return this.#watches.watchPrefix(target.prefix, target.from, observer)
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    this.#renewals.close()
    this.#watches.close(LeaseholdError.from(CLOSED))
    this.#listenConnection?.close()
    await this.#calls.close()
    await this.#sweeper.close()
  }

  #check(check: () => Complaint): void {
    const complaint = this.#closing ? CLOSED : check()
    if (complaint) throw LeaseholdError.from(complaint)
  }

  async #change(call: Parameters<Calls['call']>[0], asked: Asked): Promise<Changed> {
    const answer = await this.#calls.call<readonly ['changed', number] | RefusalRow>(call)
    if (answer[0] !== 'changed') throw refusalOf(answer, asked)
    return { revision: answer[1] }
  }

  #receive(payload: string): void {
    if (payload === 'e') this.#watches.eventsAdded()
    else if (payload.startsWith('l')) {
      this.#watches.leasesChanged(payload.slice(1).split(',').map(Number))
    } else if (payload === 'd0') this.#sweeper.receive(0, null)
    else if (payload.startsWith('d')) this.#sweeper.receive(Number(payload.slice(1)))
  }

  async #tidy(): Promise<void> {
    if (this.#tidying) return
    this.#tidying = true
    try {
      while (!this.#closing && (await this.#database.ask('tidy($1::text::integer)', [TIDY])));
    } catch {
      // The next change will report that there is more to forget.
    }
    this.#tidying = false
  }
}

type BusyRow = readonly ['busy', revision: number, ahead: readonly AheadRow[]]
type ClaimedRow =
  | readonly ['claimed', revision: number, ahead: readonly AheadRow[]]
  | BusyRow
  | RefusalRow
type GrantRow =
  | readonly ['granted', revision: number, token: number, ahead: readonly AheadRow[]]
  | BusyRow
  | RefusalRow
type RevokedRow = readonly [
  'revoked',
  revision: number,
  leases: number,
  claims: number,
  more: boolean,
]

function busyOf([outcome, revision, ahead]: BusyRow): Busy {
  return { outcome, revision, ahead: readAhead(ahead) }
}

function requestOf({ request }: { readonly request?: string | undefined }): string | null {
  return request === undefined ? null : toText(request)
}

function specOf({ key, mode, limit = 0, value }: ClaimSpec): unknown[] {
  return [key, mode === 'shared' ? limit : -1, value === undefined ? null : toText(value)]
}

/** JSON has no infinite numbers. */
function finite(ms: number): number | string {
  return ms === Infinity ? 'Infinity' : ms
}

function textLabels(labels: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(labels)
  return Object.fromEntries(entries.map(([name, value]) => [toText(name), toText(value)]))
}

function targetOf(target: RevokeTarget): [string, string | number, number | null] {
  if ('lease' in target) return ['lease', numberOf(target.lease), null]
  if ('parent' in target) return ['parent', numberOf(target.parent), null]
  if ('prefix' in target) return ['prefix', target.prefix, null]
  return ['key', target.key, target.token ?? null]
}

function askedOf(target: RevokeTarget): Asked {
  if ('lease' in target) return target
  return 'parent' in target ? { lease: target.parent } : {}
}
