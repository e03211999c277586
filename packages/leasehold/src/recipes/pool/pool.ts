import { type Client, Conflict, type Snapshot, type View } from '../../client/index.ts'
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

/** What became of a try: the permit, or the reason why there is none now. */
export type PermitTry = AsyncDisposable &
  (
    | { readonly permit: Permit; readonly why: undefined }
    | { readonly permit: undefined; readonly why: string }
  )

interface Watcher {
  readonly listener: (status: PoolStatus) => void
  isNotifying: boolean
  /** Something has changed since the last was put together. */
  again: boolean
}

/**
 * A pool of scarce resources, shared fairly by tenants.
 *
 * One key is the line, and each resource has keys of its own: to wait is to have a place in line, to
 * hold is to hold the resource's keys. Whose turn it is is a pure function of what everyone sees
 * (`turn.ts`), and who is served is decided by the store alone, since taking is claiming keys that
 * must be free.
 *
 * **Promised.** Never more is held than there is, and every permit has a token of its own, whatever
 * any process believes. Each tenant that wants something is served up to its guaranteed share before
 * others are beyond theirs, and no request is passed over for ever: see `turn.ts`. Several
 * resources are taken together or not at all. A waiter that died is out of the way with its lease.
 * Nobody polls.
 *
 * **Not promised.** That a holder returns what it has: without `maxHold` or a `ttl` that runs out a
 * permit may be held for ever. The order is that of what was seen: of two who join in the same
 * instant either may be the first.
 */
export class Pool {
  readonly name: string
  readonly #client: Client
  readonly #adaptive: Adaptive
  readonly #keys: PoolKeys
  readonly #records: UsageRecords
  readonly #publication: Publication
  readonly #pool: PendingRequestDependencies
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
    this.#pool = {
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

  /** Waits in line until what is asked for is held. */
  async take(options: TakeOptions): Promise<Permit> {
    return this.#withLearnedTtl(options, async (request) => {
      const pending = new PendingRequest(this.#pool, request)
      void this.#begin(pending)
      return pending.outcome
    })
  }

  /**
   * Takes what is asked for if it is free and nobody else's turn. Never waits in line. Goes by what
   * this process has seen: what was returned elsewhere in this instant may be missed.
   */
  async tryTake(options: TakeOptions): Promise<PermitTry> {
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

  /** With a ttl that is left to what was learnt, it is learnt from what is taken. */
  async #withLearnedTtl<Taken extends HeldPermit | undefined>(
    options: TakeOptions,
    take: (request: Request) => Promise<Taken>,
  ): Promise<Taken> {
    // What is wrong is told before anything is asked of the store.
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
    await this.#ready()
    this.#check(asked)
    let would = scheduleNow(asked, this.#snapshot())
    // That something was given back may be known to the store alone as yet.
    would = would.units ? would : scheduleNow(asked, this.#snapshot(await this.#view!.latest()))
    const { request, units, before } = would
    if (!units) return `nothing that suits is free now, and ${before} in line come before`
    const taken = await this.#take(request, units, undefined)
    return taken instanceof Conflict ? `${taken.key} was just taken by ${taken.holder}` : taken
  }

  /** Who holds what, who waits, and how long that will probably take. */
  async status(): Promise<PoolStatus> {
    await this.#ready()
    const untils = new Map<Key, Time>()
    const prefix = `${this.#keys.prefix}r/`
    for (let after: Key | undefined, more = true; more; ) {
      const page = await this.#client.store.read({ prefix, after })
      for (const { key, claims } of page.keys) untils.set(key, claims[0]!.until)
      after = page.keys.at(-1)?.key
      more = page.more && after !== undefined
    }
    const snapshot = this.#snapshot()
    const now = Math.max(snapshot.latest, this.#client.now())
    return statusOf(snapshot, this.#view!, this.#keys.notice, now, untils)
  }

  /**
   * Calls with the status now and after every change, one after the other; changes that come while
   * one is being put together are told together. Answers with a function that ends it.
   */
  watch(listener: (status: PoolStatus) => void): () => void {
    const watcher = { listener, isNotifying: false, again: false }
    this.#watchers.add(watcher)
    void this.#notify(watcher)
    return () => void this.#watchers.delete(watcher)
  }

  /**
   * Replaces the published definition, for all processes. What is held stays held, also where its
   * resource is no longer part of the pool.
   */
  async redefine(definition: PoolDefinition): Promise<void> {
    await this.#publication.replace(definition)
    this.#decide()
  }

  /** The definition that this process brings. It is published with the first use of the pool. */
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
      // The next use asks again: rights may have been given meanwhile.
      view.close()
      if (this.#view === view) this.#view = undefined
      throw error
    }
    await this.#publication.ready()
  }

  /** Refuses what can never be served. */
  #check(request: Request): void {
    const definition = this.#definition
    if (weightOf(definition, request.tenant) === undefined) {
      throw invalid(
        `tenant ${show(request.tenant)} is not one of pool ${show(this.name)}: its tenants are ${Object.keys(definition.tenants!).map(show).join(', ')}`,
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

  /** Decides whose turn it is; and where it is the turn of one who waits here, takes. */
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

  /** Tells those whose permits are asked back. */
  #deliverNotices(view: View): void {
    for (const permit of this.#permits) {
      const place = view.places(noticeKey(this.#keys.notice, { token: permit.claimToken }))[0]
      const notice = place && noticeFrom(place.holder, place.value)
      if (notice !== undefined) permit.announce(notice)
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
      // It is told with the next change.
      const detail = `the status could not be told: ${error}`
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
    const { strategy, grace } = request
    const maxHold = definition.maxHold === 0 ? undefined : definition.maxHold
    const ttl = Math.min(request.ttl, maxHold ?? Infinity)
    const claims = units.map((key) => ({ key, value }))
    const hold = await this.#client.tryHold(claims, { strategy, ttl, grace, maxHold })
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

/** What is kept by a heartbeat is booked for as long as its kind is usually held. */
function withBooking(request: Request, { records }: PoolSnapshot): Request {
  if (request.strategy === 'reservation') return request
  return { ...request, booked: Math.round(expectedHold(records, request.kind) ?? request.ttl) }
}

/** Whether one who asks now, behind everybody in line, would have its turn at once: on which units. */
function scheduleNow(asked: Request, snapshot: PoolSnapshot) {
  const request = withBooking(asked, snapshot)
  const self: Waiter = { ...request, token: Number.MAX_SAFE_INTEGER }
  const queue = scheduleAll<Waiter>({ ...snapshot, waiters: [...snapshot.waiters, self] })
  const before = queue.findIndex(({ waiter }) => waiter === self)
  return { request, before, units: queue[before]?.units }
}
