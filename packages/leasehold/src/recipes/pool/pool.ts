import {
  type CallOptions,
  type Client,
  Conflict,
  type Snapshot,
  timeoutIn,
  type View,
} from '../../client/index.ts'
import {
  type Duration,
  invalid,
  isLeaseholdError,
  type Key,
  show,
  type Time,
  type Token,
} from '../../port/index.ts'
import type { Adaptive } from '../adaptive.ts'
import { refuseWait } from '../arguments.ts'
import { type Definition, type PoolDefinition, unitsOf, weightOf } from './definition/definition.ts'
import { Publication } from './definition/publication.ts'
import { conditionText } from './definition/where.ts'
import { PendingRequest, type PendingRequestDependencies } from './pending-request.ts'
import { HeldPermit, type Permit, type PermitDependencies } from './permit.ts'
import { keysOf, type PoolKeys, type PoolSnapshot, poolSnapshot } from './pool-snapshot.ts'
import { noticeFrom, noticeKey } from './preemption-request.ts'
import { permitJson, type Request, requestOf, type TakeOptions } from './request.ts'
import { expectedHold } from './schedule/forecast.ts'
import { preemptions } from './schedule/preemption.ts'
import { countSuitable, schedule, scheduleAll, type Waiter } from './schedule/schedule.ts'
import { type PoolStatus, statusOf } from './status.ts'
import { UsageRecords } from './usage/usage-records.ts'

/** The result of a try: the permit, or the reason why there is none. */
export type PermitTry = AsyncDisposable &
  (
    | { readonly permit: Permit; readonly why: undefined }
    | { readonly permit: undefined; readonly why: string }
  )

interface Watcher {
  readonly listener: (status: PoolStatus) => void
  isNotifying: boolean
  /** Something has changed since the last status was computed. */
  again: boolean
}

/**
 * A pool of scarce resources, shared fairly by tenants.
 *
 * One key is the queue, and each resource has its own keys. To wait is to have a claim in the
 * queue; to hold is to hold the resource's keys. Every process computes who is served next with the
 * same pure function (`schedule.ts`). The store alone decides who gets a resource, because taking
 * means claiming free keys.
 *
 * **Promised.** Never more is held than exists, and every permit has its own token. Each tenant is
 * served up to its guaranteed share before others exceed theirs. No request is passed over forever:
 * see `schedule.ts`. Several resources are taken together or not at all. A dead waiter leaves the
 * queue with its lease. Nobody polls.
 *
 * **Not promised.** A holder may keep a permit forever, unless there is a `maxHold` or the `ttl`
 * ends. The order follows what was seen: of two requests at the same moment, either may be first.
 */
export class Pool {
  readonly name: string
  readonly #client: Client
  readonly #adaptive: Adaptive
  readonly #keys: PoolKeys
  readonly #records: UsageRecords
  readonly #publication: Publication
  readonly #dependencies: PendingRequestDependencies
  readonly #pending = new Set<PendingRequest>()
  readonly #permits = new Set<HeldPermit>()
  readonly #watchers = new Set<Watcher>()
  #view: View | undefined = undefined
  #seen = 0

  constructor(client: Client, name: string, adaptive: Adaptive) {
    this.#client = client
    this.#adaptive = adaptive
    this.name = name
    this.#keys = keysOf(name)
    this.#records = new UsageRecords(client, this.#keys.records)
    this.#publication = new Publication(client, name, this.#keys.definition)
    const seen = () => this.#seen
    this.#dependencies = {
      client,
      name,
      queueKey: this.#keys.queue,
      noticePrefix: this.#keys.notice,
      get seen() {
        return seen()
      },
      noticePeriod: () => this.#definition.notice,
      decide: () => this.#decide(),
      take: (request, units, waiter) => this.#take(request, units, waiter),
      left: (pending) => void this.#pending.delete(pending),
    }
  }

  /** Waits in the queue until the requested resources are held. */
  async take(options: TakeOptions): Promise<Permit> {
    return this.#withLearnedTtl(options, async (request) => {
      const pending = new PendingRequest(this.#dependencies, request)
      void this.#begin(pending)
      return pending.outcome
    })
  }

  /**
   * Takes the requested resources if they are free and nobody else is next. Never waits. It decides
   * by what this process has seen, so it may miss something that was just returned elsewhere.
   */
  async tryTake(options: TakeOptions): Promise<PermitTry> {
    refuseWait('tryTake', 'take', options)
    let why = ''
    const permit = await this.#withLearnedTtl(options, async (request) => {
      const taken = await this.#tryTake(request)
      if (typeof taken !== 'string') return taken
      why = taken
      return undefined
    })
    if (permit === undefined) return { permit, why, [Symbol.asyncDispose]: async () => {} }
    const release = () => permit[Symbol.asyncDispose]()
    return { permit, why: undefined, [Symbol.asyncDispose]: release }
  }

  /** With `ttl: 'adaptive'`, chooses the ttl and learns from the permit. */
  async #withLearnedTtl<Taken extends HeldPermit | undefined>(
    options: TakeOptions,
    take: (request: Request) => Promise<Taken>,
  ): Promise<Taken> {
    // Invalid options fail before any store call.
    const request = requestOf(options)
    if (options.ttl !== 'adaptive') return take(request)
    const { ttl, kind } = options
    const timed = await this.#adaptive.timed<{ ttl?: Duration }>({ ttl, kind })
    const learnt = Number(timed.options.ttl)
    const permit = await take(requestOf(options, learnt))
    if (permit !== undefined) timed.track({ key: permit.keys[0]!, claimToken: permit.claimToken })
    return permit
  }

  async #tryTake(asked: Request): Promise<HeldPermit | string> {
    const client = this.#client.limitedTo(asked.timeout)
    await client.answered(`the read of pool ${show(this.name)}`, this.#ready())
    this.#check(asked)
    let would = scheduleNow(asked, this.#snapshot())
    // Perhaps only the store knows yet that something was returned.
    would = would.units ? would : scheduleNow(asked, this.#snapshot(await this.#view!.latest()))
    const { request, units, before } = would
    if (!units) return `nothing suitable is free, and ${before} in the queue come first`
    const taken = await this.#take(request, units, undefined)
    return taken instanceof Conflict ? `${taken.key} was just taken by ${taken.holder}` : taken
  }

  /** Returns who holds what, who waits, and how long the wait will probably take. */
  async status(options?: CallOptions): Promise<PoolStatus> {
    const client = this.#client.limitedTo(timeoutIn('status', options))
    await client.answered(`the read of pool ${show(this.name)}`, this.#ready())
    const untils = new Map<Key, Time>()
    const prefix = `${this.#keys.prefix}r/`
    for (let after: Key | undefined, more = true; more; ) {
      const page = await client.store.read({ prefix, after })
      for (const { key, claims } of page.keys) untils.set(key, claims[0]!.until)
      after = page.keys.at(-1)?.key
      more = page.more && after !== undefined
    }
    const snapshot = this.#snapshot()
    const now = Math.max(snapshot.latest, this.#client.now())
    return statusOf(snapshot, this.#view!, this.#keys.notice, now, untils)
  }

  /**
   * Calls the listener with the status now and after every change, one call at a time. Changes
   * during a call are combined. Returns a function that stops it.
   */
  watch(listener: (status: PoolStatus) => void): () => void {
    const watcher = { listener, isNotifying: false, again: false }
    this.#watchers.add(watcher)
    void this.#notify(watcher)
    return () => void this.#watchers.delete(watcher)
  }

  /**
   * Replaces the published definition for all processes. Permits stay held, even if their resource
   * is no longer part of the pool.
   */
  async redefine(definition: PoolDefinition): Promise<void> {
    await this.#publication.replace(definition)
    this.#decide()
  }

  /** The definition that this process uses. The first use of the pool publishes it. */
  define(definition: Definition): void {
    this.#publication.want(definition)
  }

  async #begin(pending: PendingRequest): Promise<void> {
    try {
      await this.#ready()
      this.#check(pending.request)
    } catch (error) {
      return pending.fail(error)
    }
    if (pending.settled) return
    pending.request = withBooking(pending.request, this.#snapshot())
    this.#pending.add(pending)
    await pending.join()
  }

  async #ready(): Promise<void> {
    if (this.#view === undefined) {
      const view = this.#client.view(this.#keys.prefix, () => {
        this.#seen++
        this.#publication.seen(view)
        this.#decide()
        this.#deliverNotices(view)
        for (const watcher of this.#watchers) void this.#notify(watcher)
      })
      this.#view = view
    }
    const view = this.#view
    try {
      await this.#client.awaited(view.ready)
    } catch (error) {
      // The next use tries again: access may have been granted meanwhile.
      view.close()
      if (this.#view === view) this.#view = undefined
      throw error
    }
    await this.#publication.ready()
  }

  /** Throws if the request can never be served. */
  #check(request: Request): void {
    const definition = this.#definition
    if (weightOf(definition, request.tenant) === undefined) {
      throw invalid(
        `tenant ${show(request.tenant)} is not a tenant of pool ${show(this.name)}. Its tenants are ${Object.keys(definition.tenants!).map(show).join(', ')}`,
      )
    }
    const suit = countSuitable(definition, request)
    if (suit >= request.count) return
    const { where, shares, count } = request
    const conditions = where.map(conditionText)
    if (shares !== undefined) conditions.push(`at least ${shares} shares`)
    const what = conditions.length === 0 ? 'in all' : `with ${conditions.join(', ')}`
    throw invalid(
      `pool ${show(this.name)} has ${suit} of ${definition.resources.length} resources ${what}, but ${count} are asked for`,
    )
  }

  get #definition(): Definition {
    return this.#publication.known!
  }

  #snapshot(claims: Snapshot = this.#view!): PoolSnapshot {
    return poolSnapshot(claims, this.name, this.#keys, this.#definition)
  }

  /** Computes who is served next, and takes the resources for requests of this process. */
  #decide(): void {
    const own = new Map<Token, PendingRequest>()
    for (const pending of this.#pending) {
      if (pending.queueToken !== undefined) own.set(pending.queueToken, pending)
    }
    if (own.size === 0) return
    const snapshot = this.#snapshot()
    for (const { waiter, units } of schedule(snapshot)) {
      if (units !== undefined) void own.get(waiter.token)?.take(units)
    }
    const asked = preemptions(snapshot)
    const alive = new Set(snapshot.occupants.map(({ token }) => token))
    const isGone = (permit: Token) => !alive.has(permit)
    for (const [token, pending] of own) pending.preempt(asked.get(token) ?? [], isGone)
  }

  /** Notifies the holders of preempted permits. */
  #deliverNotices(view: View): void {
    for (const permit of this.#permits) {
      const place = view.places(noticeKey(this.#keys.notice, { token: permit.claimToken }))[0]
      const notice = place && noticeFrom(place.holder, place.value)
      if (notice !== undefined) permit.notify(notice)
    }
  }

  async #notify(watcher: Watcher): Promise<void> {
    watcher.again = true
    if (watcher.isNotifying) return
    watcher.isNotifying = true
    try {
      while (watcher.again && this.#watchers.has(watcher)) {
        watcher.again = false
        const status = await this.status()
        if (this.#watchers.has(watcher)) watcher.listener(status)
      }
    } catch (error) {
      // The next change tries again.
      const detail = `the status could not be computed: ${error}`
      const level = isLeaseholdError(error, 'closed') ? 'debug' : 'warn'
      this.#client.emit({ recipe: 'pool', event: 'watch', key: this.#keys.prefix, detail, level })
    } finally {
      watcher.isNotifying = false
    }
  }

  async #take(
    request: Request,
    units: readonly Key[],
    waiter: Token | undefined,
  ): Promise<HeldPermit | Conflict> {
    const definition = this.#definition
    const value = permitJson(request, waiter)
    const { strategy, grace, timeout } = request
    const maxHold = definition.maxHold === 0 ? undefined : definition.maxHold
    const ttl = Math.min(request.ttl, maxHold ?? Infinity)
    const claims = units.map((key) => ({ key, value }))
    const hold = await this.#client.tryHold(claims, { strategy, ttl, grace, maxHold, timeout })
    if (hold instanceof Conflict) return hold
    const taken = new Set(units)
    const parts = definition.resources.flatMap((resource) => {
      const held = unitsOf(this.name, resource).filter((key) => taken.has(key)).length
      return held === 0 ? [] : [{ name: resource.name, cost: held / resource.shares }]
    })
    const resources = parts.map(({ name }) => name)
    const cost = parts.reduce((sum, part) => sum + part.cost, 0)
    const permit = new HeldPermit(this.#permitDependencies(), {
      hold,
      request,
      waiter,
      resources,
      cost,
    })
    this.#permits.add(permit)
    const detail = `${request.tenant} has ${resources.join(', ')} for ${request.kind}`
    const key = units[0]!
    this.#client.emit({ recipe: 'pool', event: 'taken', key, token: hold.claimToken, detail })
    return permit
  }

  #permitDependencies(): PermitDependencies {
    return {
      client: this.#client,
      records: this.#records,
      halfLife: this.#definition.halfLife,
      ended: (permit) => void this.#permits.delete(permit),
    }
  }
}

/** A permit with a heartbeat is booked for as long as its kind is usually held. */
function withBooking(request: Request, { records }: PoolSnapshot): Request {
  if (request.strategy === 'reservation') return request
  return { ...request, booked: Math.round(expectedHold(records, request.kind) ?? request.ttl) }
}

/** Schedules a new request behind the whole queue. `units` are what it could take now, if any. */
function scheduleNow(asked: Request, snapshot: PoolSnapshot) {
  const request = withBooking(asked, snapshot)
  const self: Waiter = { ...request, token: Number.MAX_SAFE_INTEGER }
  const queue = scheduleAll<Waiter>({ ...snapshot, waiters: [...snapshot.waiters, self] })
  const before = queue.findIndex(({ waiter }) => waiter === self)
  return { request, before, units: queue[before]?.units }
}
