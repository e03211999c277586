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
import { Books } from './books.ts'
import { type Definition, type PoolDefinition, unitsOf, weightOf } from './definition.ts'
import { expectedHold } from './estimate.ts'
import { noticeFrom, noticeKey } from './notice.ts'
import { HeldPermit, type Permit, type PermitOffice } from './permit.ts'
import { preemptions } from './preemption.ts'
import { Publication } from './publication.ts'
import { permitText, type Request, requestOf, type TakeOptions } from './request.ts'
import { keysOf, type PoolKeys, type PoolStanding, standingOf } from './standing.ts'
import { type PoolStatus, statusOf } from './status.ts'
import { suiting, turn, type Waiter, wholeLine } from './turn.ts'
import { Waiting, type WaitingRoom } from './waiting.ts'
import { conditionText } from './where.ts'

/** What became of a try: the permit, or the reason why there is none now. */
export type PermitTry = AsyncDisposable &
  (
    | { readonly permit: Permit; readonly why: undefined }
    | { readonly permit: undefined; readonly why: string }
  )

interface Watcher {
  readonly listener: (status: PoolStatus) => void
  telling: boolean
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
  readonly #books: Books
  readonly #publication: Publication
  readonly #room: WaitingRoom
  readonly #waiting = new Set<Waiting>()
  readonly #permits = new Set<HeldPermit>()
  readonly #watchers = new Set<Watcher>()
  #view: View | undefined = undefined
  #seen = 0

  constructor(client: Client, name: string, adaptive: Adaptive) {
    this.#client = client
    this.#adaptive = adaptive
    this.name = name
    this.#keys = keysOf(name)
    this.#books = new Books(client, this.#keys.books)
    this.#publication = new Publication(client, name, this.#keys.definition)
    const seen = () => this.#seen
    this.#room = {
      client,
      name,
      lineKey: this.#keys.line,
      noticePrefix: this.#keys.notice,
      get seen() {
        return seen()
      },
      noticePeriod: () => this.#definition.notice,
      look: () => this.#look(),
      take: (request, units, line) => this.#take(request, units, line),
      left: (waiting) => void this.#waiting.delete(waiting),
    }
  }

  /** Waits in line until what is asked for is held. */
  async take(options: TakeOptions): Promise<Permit> {
    return this.#timed(options, async (request) => {
      const waiting = new Waiting(this.#room, request)
      void this.#begin(waiting)
      return waiting.outcome
    })
  }

  /**
   * Takes what is asked for if it is free and nobody else's turn. Never waits in line. Goes by what
   * this process has seen: what was returned elsewhere in this instant may be missed.
   */
  async tryTake(options: TakeOptions): Promise<PermitTry> {
    let why = ''
    const permit = await this.#timed(options, async (request) => {
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
  async #timed<Taken extends HeldPermit | undefined>(
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
    let would = turnAtOnce(asked, this.#standing())
    // That something was given back may be known to the store alone as yet.
    would = would.units ? would : turnAtOnce(asked, this.#standing(await this.#view!.latest()))
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
    const standing = this.#standing()
    const now = Math.max(standing.latest, this.#client.now())
    return statusOf(standing, this.#view!, this.#keys.notice, now, untils)
  }

  /**
   * Calls with the status now and after every change, one after the other; changes that come while
   * one is being put together are told together. Answers with a function that ends it.
   */
  watch(listener: (status: PoolStatus) => void): () => void {
    const watcher = { listener, telling: false, again: false }
    this.#watchers.add(watcher)
    void this.#tell(watcher)
    return () => void this.#watchers.delete(watcher)
  }

  /**
   * Replaces the published definition, for all processes. What is held stays held, also where its
   * resource is no longer part of the pool.
   */
  async redefine(definition: PoolDefinition): Promise<void> {
    await this.#publication.replace(definition)
    this.#look()
  }

  /** The definition that this process brings. It is published with the first use of the pool. */
  define(definition: Definition): void {
    this.#publication.want(definition)
  }

  async #begin(waiting: Waiting): Promise<void> {
    try {
      await this.#ready()
      this.#check(waiting.request)
    } catch (error) {
      return waiting.fail(error)
    }
    if (waiting.settled) return
    waiting.request = withBooking(waiting.request, this.#standing())
    this.#waiting.add(waiting)
    await waiting.join()
  }

  async #ready(): Promise<void> {
    if (this.#view === undefined) {
      const view = this.#client.view(this.#keys.prefix, () => {
        this.#seen++
        this.#publication.seen(view)
        this.#look()
        this.#heed(view)
        for (const watcher of this.#watchers) void this.#tell(watcher)
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
    const suit = suiting(definition, request)
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

  #standing(claims: Snapshot = this.#view!): PoolStanding {
    return standingOf(claims, this.name, this.#keys, this.#definition)
  }

  /** Decides whose turn it is; and where it is the turn of one who waits here, takes. */
  #look(): void {
    const own = new Map<Token, Waiting>()
    for (const waiting of this.#waiting) {
      if (waiting.line !== undefined) own.set(waiting.line, waiting)
    }
    if (own.size === 0) return
    const standing = this.#standing()
    for (const { waiter, units } of turn(standing)) {
      if (units !== undefined) void own.get(waiter.token)?.take(units)
    }
    const asked = preemptions(standing)
    const alive = new Set(standing.occupants.map(({ token }) => token))
    const isGone = (permit: Token) => !alive.has(permit)
    for (const [token, waiting] of own) waiting.askBack(asked.get(token) ?? [], isGone)
  }

  /** Tells those whose permits are asked back. */
  #heed(view: View): void {
    for (const permit of this.#permits) {
      const place = view.places(noticeKey(this.#keys.notice, { token: permit.claimToken }))[0]
      const notice = place && noticeFrom(place.holder, place.value)
      if (notice !== undefined) permit.announce(notice)
    }
  }

  async #tell(watcher: Watcher): Promise<void> {
    watcher.again = true
    if (watcher.telling) return
    watcher.telling = true
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
      watcher.telling = false
    }
  }

  async #take(
    request: Request,
    units: readonly Key[],
    line: Token | undefined,
  ): Promise<HeldPermit | Conflict> {
    const definition = this.#definition
    const value = permitText(request, line)
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
    const permit = new HeldPermit(this.#office(), { hold, request, line, resources, cost })
    this.#permits.add(permit)
    const detail = `${request.tenant} has ${resources.join(', ')} for ${request.kind}`
    const key = units[0]!
    this.#client.emit({ recipe: 'pool', event: 'taken', key, token: hold.claimToken, detail })
    return permit
  }

  #office(): PermitOffice {
    return {
      client: this.#client,
      books: this.#books,
      halfLife: this.#definition.halfLife,
      ended: (permit) => void this.#permits.delete(permit),
    }
  }
}

/** What is kept by a heartbeat is booked for as long as its kind is usually held. */
function withBooking(request: Request, { books }: PoolStanding): Request {
  if (request.strategy === 'reservation') return request
  return { ...request, booked: Math.round(expectedHold(books, request.kind) ?? request.ttl) }
}

/** Whether one who asks now, behind everybody in line, would have its turn at once: on which units. */
function turnAtOnce(asked: Request, standing: PoolStanding) {
  const request = withBooking(asked, standing)
  const self: Waiter = { ...request, token: Number.MAX_SAFE_INTEGER }
  const line = wholeLine<Waiter>({ ...standing, waiters: [...standing.waiters, self] })
  const before = line.findIndex(({ waiter }) => waiter === self)
  return { request, before, units: line[before]?.units }
}
