import {
  type Definition,
  definitionOf,
  type PoolDefinition,
} from '../../../../src/recipes/pool/definition/definition.ts'
import { forecast } from '../../../../src/recipes/pool/schedule/forecast.ts'
import {
  costOf,
  type Occupant,
  schedule,
  type Waiter,
} from '../../../../src/recipes/pool/schedule/schedule.ts'
import { observed } from '../../../../src/recipes/pool/usage/hold-times.ts'
import {
  type Account,
  addTo,
  charge,
  EMPTY_RECORD,
  type HoldTimes,
  usageOf,
} from '../../../../src/recipes/pool/usage/usage.ts'
import type { SeededRandom } from '../../../../src/testing/sim/index.ts'

/** A request of a simulated tenant. */
export interface Job {
  readonly count: number
  /** How long it will be held; others know only the booked time. */
  readonly takes: number
  readonly booked: number
  readonly priority?: number
}

/** When a tenant asks for what: gets the time of the last request and returns the next. */
export interface Behaviour {
  /** How many jobs to add to the queue at this time, given how many it has there. */
  ask(now: number, inQueue: number, random: SeededRandom): { jobs: readonly Job[]; again: number }
}

interface Running extends Occupant {
  readonly kind: string
  readonly since: number
  readonly booked: number
  readonly cost: number
  readonly ends: number
}

interface StoredWaiter extends Waiter {
  readonly kind: string
  foretold?: { readonly wait: number; readonly at: number }
  readonly job: Job
  readonly since: number
}

/** What a tenant received, in resources times milliseconds, and how long it waited. */
export interface Outcome {
  readonly tenant: string
  readonly weight: number
  received: number
  /** What it would have received if everything were divisible and movable. */
  deserved: number
  /** The most that it was ever behind its share. */
  behind: number
  served: number
  longestWait: number
  meanWait: number
  /** The longest time with waiting work and no resource. */
  longestDrought: number
  /** Of some waits: the forecast and the real time. */
  readonly foretold: { readonly wait: number; readonly waited: number }[]
}

/**
 * A simulated pool: it uses the real schedule, with requests and returns from a list of events
 * instead of a store. Days pass in milliseconds.
 */
export class PoolWorld {
  readonly definition: Definition
  readonly outcomes = new Map<string, Outcome>()
  /** Whether some waits get a forecast, which takes time. */
  foresees = false
  readonly #behaviours: ReadonlyMap<string, Behaviour>
  readonly #random: SeededRandom
  readonly #asks = new Map<string, number>()
  readonly #lastServed = new Map<string, number>()
  /** The remaining work in the ideal case. */
  readonly #work = new Map<string, number>()
  #now = 0
  #token = 0
  #queue: StoredWaiter[] = []
  #running: Running[] = []
  #accounts: Record<string, Account> = {}
  #kinds: Record<string, HoldTimes> = {}

  constructor(pool: PoolDefinition, behaviours: Record<string, Behaviour>, random: SeededRandom) {
    this.definition = definitionOf(pool)
    this.#behaviours = new Map(Object.entries(behaviours))
    this.#random = random
    for (const tenant of this.#behaviours.keys()) {
      this.#asks.set(tenant, 0)
      this.outcomes.set(tenant, {
        tenant,
        weight: this.definition.tenants?.[tenant] ?? 1,
        received: 0,
        deserved: 0,
        behind: 0,
        served: 0,
        longestWait: 0,
        meanWait: 0,
        longestDrought: 0,
        foretold: [],
      })
    }
  }

  run(duration: number): readonly Outcome[] {
    while (this.#now < duration) {
      this.#askAll()
      if (this.foresees && this.#random.chance(0.03)) this.#foretell()
      this.#serve()
      const next = Math.min(
        duration,
        ...this.#running.map(({ ends }) => ends),
        ...this.#asks.values(),
      )
      this.#pass(Math.max(next, this.#now + 1))
    }
    return [...this.outcomes.values()]
  }

  get held(): number {
    return this.#running.reduce((sum, { cost }) => sum + cost, 0)
  }

  #askAll(): void {
    for (const [tenant, behaviour] of this.#behaviours) {
      if (this.#asks.get(tenant)! > this.#now) continue
      const inQueue = this.#queue.filter((it) => it.tenant === tenant).length
      const { jobs, again } = behaviour.ask(this.#now, inQueue, this.#random)
      this.#asks.set(tenant, Math.max(again, this.#now + 1))
      if (inQueue === 0) this.#lastServed.set(tenant, this.#now)
      for (const job of jobs) {
        const { count, booked, priority = 0 } = job
        const token = ++this.#token
        this.#work.set(tenant, (this.#work.get(tenant) ?? 0) + count * job.takes)
        this.#queue.push({
          token,
          tenant,
          count,
          booked,
          priority,
          where: [],
          kind: tenant,
          job,
          since: this.#now,
        })
      }
    }
  }

  #snapshot() {
    const { definition } = this
    const records = [{ ...EMPTY_RECORD, accounts: this.#accounts, kinds: this.#kinds }]
    const usage = usageOf(records, this.#running, this.#now, definition.halfLife)
    const [waiters, occupants] = [this.#queue, this.#running]
    return { pool: 'p', definition, waiters, occupants, usage, records }
  }

  /** Makes a forecast for one waiter. */
  #foretell(): void {
    if (this.#queue.length === 0) return
    const one = this.#random.pick(this.#queue)
    const reported = forecast(this.#snapshot(), this.#now).get(one.token)
    if (reported?.basis === 'observed') one.foretold ??= { wait: reported.wait, at: this.#now }
  }

  #serve(): void {
    const poolState = this.#snapshot()
    const served = new Set<Waiter>()
    for (const { waiter, units } of schedule(poolState)) {
      if (units === undefined) continue
      served.add(waiter)
      this.#start(waiter, units)
    }
    this.#queue = this.#queue.filter((waiter) => !served.has(waiter))
  }

  #start(waiter: StoredWaiter, keys: readonly string[]): void {
    const { tenant, booked, job, since } = waiter
    const taken = new Set(this.#running.flatMap((it) => it.keys))
    if (keys.some((key) => taken.has(key))) throw new Error('a resource was given twice')
    const cost = costOf(this.definition, waiter)
    const ends = this.#now + job.takes
    this.#running.push({
      token: ++this.#token,
      tenant,
      kind: tenant,
      keys,
      cost,
      booked,
      since: this.#now,
      ends,
    })
    const outcome = this.outcomes.get(tenant)!
    const waited = this.#now - since
    outcome.meanWait = (outcome.meanWait * outcome.served + waited) / ++outcome.served
    const { foretold } = waiter
    if (foretold !== undefined) {
      outcome.foretold.push({ wait: foretold.wait, waited: this.#now - foretold.at })
    }
    outcome.longestWait = Math.max(outcome.longestWait, waited)
    this.#noteDrought(tenant)
    this.#lastServed.set(tenant, this.#now)
  }

  #noteDrought(tenant: string): void {
    const outcome = this.outcomes.get(tenant)!
    const drought = this.#now - this.#lastServed.get(tenant)!
    outcome.longestDrought = Math.max(outcome.longestDrought, drought)
  }

  #pass(to: number): void {
    this.#account(to - this.#now)
    this.#now = to
    const waiting = new Set(this.#queue.map(({ tenant }) => tenant))
    for (const tenant of waiting) this.#noteDrought(tenant)
    const { halfLife } = this.definition
    for (const { tenant, cost, since, ends } of this.#running) {
      if (ends > to) continue
      const used = { used: charge(cost, to - since, halfLife), at: to }
      this.#accounts[tenant] = addTo(this.#accounts[tenant], used, halfLife)
      this.#kinds[tenant] = observed(this.#kinds[tenant], to - since)
    }
    this.#running = this.#running.filter(({ ends }) => ends > to)
  }

  /** What was received in this time, and the fair share. */
  #account(time: number): void {
    for (const { tenant, cost } of this.#running) {
      this.outcomes.get(tenant)!.received += cost * time
    }
    this.#flow(time)
    for (const outcome of this.outcomes.values()) {
      outcome.behind = Math.max(outcome.behind, outcome.deserved - outcome.received)
    }
  }

  /** The ideal: all tenants with remaining work share by weight, continuously. */
  #flow(time: number): void {
    for (let left = time; left > 0; ) {
      const open = [...this.#work].filter(([, work]) => work > 1e-6)
      if (open.length === 0) return
      const weights = open.reduce((sum, [tenant]) => sum + this.outcomes.get(tenant)!.weight, 0)
      const rate = (tenant: string) =>
        (this.definition.resources.length * this.outcomes.get(tenant)!.weight) / weights
      const step = Math.min(left, ...open.map(([tenant, work]) => work / rate(tenant)))
      for (const [tenant, work] of open) {
        this.#work.set(tenant, work - rate(tenant) * step)
        this.outcomes.get(tenant)!.deserved += rate(tenant) * step
      }
      left -= step
    }
  }
}
