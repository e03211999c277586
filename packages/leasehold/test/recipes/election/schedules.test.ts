import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type ElectionOptions, Leasehold, type LeaseStore, type Term } from '../../../src/index.ts'
import { memoryStore } from '../../../src/stores/memory/index.ts'
import { TestClock } from '../../../src/testing/index.ts'
import { FaultyStore } from '../../client/faulty-store.ts'
import { StallClock } from './stall-clock.ts'

/** What happens, and to which process (a number, modulo the number of processes). */
type Act =
  | { readonly act: 'join'; readonly options: ElectionOptions; readonly nature: Nature }
  | { readonly act: 'leave' | 'kill' | 'resign'; readonly who: number }
  | { readonly act: 'stall'; readonly who: number; readonly ms: number }
  | { readonly act: 'hand over'; readonly to: number }
  | { readonly act: 'outage'; readonly ms: number }
  | { readonly act: 'pass'; readonly ms: number }

interface Nature {
  /** Ends its work when asked; a stubborn one only when it is stopped. */
  readonly polite: boolean
  /** How long a call takes on the way there, and on the way back. */
  readonly lag: number
}

const who = fc.nat({ max: 9 })
const ms = fc.integer({ min: 1, max: 6000 })
const options: fc.Arbitrary<ElectionOptions> = fc.record({
  priority: fc.constantFrom(0, 0, 1, 2),
  preempt: fc.boolean(),
  grace: fc.constantFrom(0, 0, 500),
})
const nature = fc.record({ polite: fc.boolean(), lag: fc.constantFrom(0, 0, 5, 50) })
const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ act: fc.constant('join'), options, nature }) },
  { weight: 4, arbitrary: fc.record({ act: fc.constantFrom('leave', 'kill', 'resign'), who }) },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('stall'), who, ms }) },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('hand over'), to: who }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('outage'), ms }) },
  { weight: 5, arbitrary: fc.record({ act: fc.constant('pass'), ms }) },
) as fc.Arbitrary<Act>

const TTL_MS = 2000
const CALL_TIMEOUT_MS = 500
/** Enough time for a leftover lease, unanswered calls, the longest backoff and a whole queue. */
const CALM_MS = TTL_MS + 500 + 3 * CALL_TIMEOUT_MS + 5000 + 5000

/** One process with one candidate. */
class Process {
  readonly name: string
  readonly clock: StallClock
  readonly link: FaultyStore
  readonly terms: Term[] = []
  readonly stop = new AbortController()
  readonly #polite: boolean
  alive = true

  constructor(name: string, world: World, nature: Nature) {
    this.name = name
    this.clock = new StallClock(world.clock)
    this.link = new FaultyStore(world.store, world.clock)
    this.#polite = nature.polite
    const { lag } = nature
    if (lag > 0) this.link.fault = () => ({ there: lag, back: lag })
  }

  async run(world: World, options: ElectionOptions): Promise<void> {
    const { clock, name: holder } = this
    const leasehold = await Leasehold.open(this.link, {
      clock,
      holder,
      callTimeout: CALL_TIMEOUT_MS,
    })
    const election = leasehold.election('boss', { ttl: TTL_MS, drain: 300, ...options })
    for await (const term of election.lead({ signal: this.stop.signal })) {
      world.elected(this, term)
      const until = this.#polite ? term.asked : term.signal
      await new Promise((resolve) => {
        if (until.aborted) resolve(undefined)
        else until.addEventListener('abort', resolve)
      })
    }
    await leasehold.close()
  }

  /** None of its calls reach the store, and none of its timers run. */
  kill(): void {
    this.link.freeze()
    this.clock.stall()
  }
}

class World {
  readonly clock = new TestClock()
  readonly store: LeaseStore = memoryStore({ clock: this.clock })
  readonly processes: Process[] = []
  #highest = 0
  #frozen = false

  get living(): Process[] {
    return this.processes.filter(({ alive }) => alive)
  }

  /** The processes that would act as leader now. A stalled one does not run. */
  believing(): Process[] {
    return this.processes.filter(({ clock, terms }) => {
      return !clock.stalled && terms.some((term) => term.leading)
    })
  }

  elected(process: Process, term: Term): void {
    expect(term.number, 'term numbers rise').toBeGreaterThan(this.#highest)
    this.#highest = term.number
    process.terms.push(term)
    this.check()
  }

  check(): void {
    const names = this.believing().map(({ name }) => name)
    expect(names.length, `${names} believe at once`).toBeLessThanOrEqual(1)
  }

  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 50) {
      await this.clock.advance(Math.min(left, 50))
      this.check()
    }
  }

  join(options: ElectionOptions, nature: Nature): void {
    const process = new Process(`p${this.processes.length}`, this, nature)
    this.processes.push(process)
    if (this.#frozen) process.link.freeze()
    process.run(this, options).catch((error) => this.faults.push(error))
  }

  readonly faults: unknown[] = []

  async play(step: Act): Promise<void> {
    const { living } = this
    const at = (index: number) => living[index % living.length]!
    if (step.act === 'join') this.join(step.options, step.nature)
    else if (step.act === 'pass') await this.pass(step.ms)
    else if (step.act === 'outage') await this.outage(step.ms)
    else if (living.length === 0) return
    else if (step.act === 'stall') await this.stall(at(step.who), step.ms)
    else if (step.act === 'hand over') {
      const [leader] = this.believing()
      const term = leader?.terms.at(-1)
      if (leader?.alive && at(step.to) !== leader) {
        term?.handOver(at(step.to).name, { timeout: 1000 }).catch(() => {})
      }
    } else if (step.act === 'resign')
      at(step.who)
        .terms.at(-1)
        ?.resign()
        .catch(() => {})
    else {
      at(step.who).alive = false
      if (step.act === 'leave') at(step.who).stop.abort()
      else at(step.who).kill()
    }
  }

  async outage(ms: number): Promise<void> {
    this.#frozen = true
    for (const process of this.living) process.link.freeze()
    await this.pass(ms)
    this.#frozen = false
    for (const process of this.living) process.link.thaw()
  }

  async stall(process: Process, ms: number): Promise<void> {
    process.kill()
    await this.pass(ms)
    process.clock.goOn()
    this.check()
    process.link.thaw()
  }
}

describe('whatever happens to candidates', () => {
  it('two terms never overlap, numbers rise, and somebody leads soon after the faults end', async () => {
    const schedules = fc.array(act, { minLength: 4, maxLength: 25 })
    await fc.assert(
      fc.asyncProperty(schedules, async (schedule) => {
        const world = new World()
        for (const step of schedule) await world.play(step)
        if (world.living.length === 0) world.join({}, { polite: true, lag: 0 })
        await world.pass(CALM_MS)
        expect(world.believing()).toHaveLength(1)
        expect(world.faults).toEqual([])
        for (const { stop } of world.living) stop.abort()
        await world.pass(2000)
        expect(world.faults).toEqual([])
        await world.store.close()
      }),
      { numRuns: 120 },
    )
  })
})
