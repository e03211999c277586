import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { SeededRandom } from '../../../../src/testing/sim/index.ts'
import { readSource } from '../../../structure/source-files.ts'
import { type Behaviour, type Outcome, PoolWorld } from './world.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

const gpus = (count: number) => Array.from({ length: count }, (_, i) => ({ name: `gpu-${i}` }))

/** Always has more in the queue than it can get, and holds each permit for hours. */
const greedy: Behaviour = {
  ask: (now, inQueue, random) => ({
    jobs: Array.from({ length: Math.max(0, 20 - inQueue) }, () => {
      return { count: 1, takes: random.between(1, 6) * HOUR, booked: 6 * HOUR }
    }),
    again: now + 10 * MINUTE,
  }),
}

/** Nothing for most of the day, then sixty requests at once, some for four resources. */
const bursty: Behaviour = {
  ask: (now, _, random) => ({
    jobs: Array.from({ length: 60 }, () => {
      const count = random.chance(0.1) ? 4 : 1
      return { count, takes: random.between(0.5, 1.5) * HOUR, booked: 2 * HOUR }
    }),
    again: now + 18 * HOUR,
  }),
}

/** A short job now and then. */
const small: Behaviour = {
  ask: (now, _, random) => ({
    jobs: [{ count: 1, takes: random.between(5, 15) * MINUTE, booked: 15 * MINUTE }],
    again: now + random.between(0, 20) * MINUTE,
  }),
}

/** Many more runs were used to find the bounds; these ensure that they hold. */
const RUNS = 25

const WEIGHTS = { greedy: { weight: 1 }, bursty: { weight: 2 }, small: { weight: 4 } }

describe('three tenants of weights 1, 2 and 4 on eight GPUs, for thirty days', () => {
  it('each get their share within 5%, and none waits forever', () => {
    const pool = { resources: gpus(8), tenants: WEIGHTS }
    const world = new PoolWorld(pool, { greedy, bursty, small }, new SeededRandom(7))
    const outcomes = world.run(30 * DAY)
    // The documentation shows what was simulated.
    expect(readSource('docs/pool.md').text).toContain(tableOf(outcomes))
    for (const { received, deserved } of outcomes) {
      expect(received / deserved).toBeGreaterThan(0.95)
    }
    const [one, two, four] = outcomes
    // A job is held for at most six hours; no tenant with waiting work gets nothing for longer.
    expect(one!.longestDrought).toBeLessThan(6 * HOUR)
    expect(two!.longestDrought).toBeLessThan(6 * HOUR)
    // Short jobs of the tenant with the highest weight pass the two hundred older ones.
    expect(four!.longestWait).toBeLessThan(3 * HOUR)
  })

  it('get forecasts, half of which are off by less than a third', () => {
    const pool = { resources: gpus(8), tenants: WEIGHTS }
    const world = new PoolWorld(pool, { greedy, bursty, small }, new SeededRandom(7))
    world.foresees = true
    const foretold = world.run(15 * DAY).flatMap((it) => it.foretold)
    const off = foretold.map(({ wait, waited }) => Math.abs(wait - waited) / Math.max(wait, waited))
    off.sort((a, b) => a - b)
    const part = (share: number) => off[Math.floor(off.length * share)]!
    expect(off.length).toBeGreaterThan(50)
    expect(part(0.5)).toBeLessThan(0.33)
  })

  it('get 1/7, 2/7 and 4/7 if all of them are greedy', () => {
    const pool = { resources: gpus(8), tenants: WEIGHTS }
    const world = new PoolWorld(
      pool,
      { greedy, bursty: greedy, small: greedy },
      new SeededRandom(7),
    )
    for (const { received, weight } of world.run(30 * DAY)) {
      const share = received / (8 * 30 * DAY)
      expect(Math.abs(share * 7 - weight) / weight).toBeLessThan(0.05)
    }
  })
})

describe('with any mix of tenants', () => {
  const mix = fc.record({
    seed: fc.integer(),
    resources: fc.integer({ min: 1, max: 8 }),
    gangs: fc.boolean(),
    tenants: fc.array(
      fc.record({
        weight: fc.integer({ min: 1, max: 8 }),
        burst: fc.integer({ min: 1, max: 40 }),
        pause: fc.integer({ min: 1, max: 600 }),
        longest: fc.integer({ min: 1, max: 60 }),
        priorities: fc.boolean(),
      }),
      { minLength: 2, maxLength: 5 },
    ),
  })
  type Mix = typeof mix extends fc.Arbitrary<infer T> ? T : never

  const LONGEST = 60 * MINUTE
  const HALF_LIFE = 2 * HOUR

  function worldOf({ seed, resources, gangs, tenants }: Mix): PoolWorld {
    const weights: Record<string, { weight: number }> = {}
    const behaviours: Record<string, Behaviour> = {}
    tenants.forEach(({ weight, burst, pause, longest, priorities }, i) => {
      weights[`t${i}`] = { weight }
      behaviours[`t${i}`] = {
        ask: (now, inQueue, random) => ({
          jobs: Array.from({ length: inQueue > 100 ? 0 : burst }, () => ({
            count: gangs ? random.integer(1, resources) : 1,
            takes: random.between(0.1, longest) * MINUTE,
            booked: random.between(0.1, longest) * MINUTE,
            priority: priorities ? random.integer(0, 3) : 0,
          })),
          again: now + pause * MINUTE,
        }),
      }
    })
    const pool = { resources: gpus(resources), tenants: weights, halfLife: HALF_LIFE }
    return new PoolWorld(pool, behaviours, new SeededRandom(seed))
  }

  it('no tenant with waiting work is passed over for longer than the bound', () => {
    fc.assert(
      fc.property(mix, (drawn) => {
        const sum = drawn.tenants.reduce((total, { weight }) => total + weight, 0)
        for (const { weight, longestDrought } of worldOf(drawn).run(2 * DAY)) {
          const catchUp = HALF_LIFE * Math.log2(sum / weight)
          const gather = LONGEST * (drawn.gangs ? drawn.tenants.length + 1 : 2)
          expect(longestDrought).toBeLessThan(catchUp + gather)
        }
      }),
      { numRuns: RUNS },
    )
  })

  // Usage decays before it is balanced, so a tenant can stay behind. The rate grows with the hold
  // time relative to the half-life: here up to half of it.
  it('each receives at least five sixths of its share, minus a constant', () => {
    fc.assert(
      fc.property(mix, (drawn) => {
        const constant = drawn.resources * (HALF_LIFE + 2 * LONGEST)
        for (const { received, deserved } of worldOf({ ...drawn, gangs: false }).run(4 * DAY)) {
          expect(received + constant).toBeGreaterThan((deserved * 5) / 6)
        }
      }),
      { numRuns: RUNS },
    )
  })

  it('a longer half-life brings each closer to its share', () => {
    const behind = [2 * HOUR, DAY].map((halfLife) => {
      const busy: Behaviour = {
        ask: (now, inQueue, random) => ({
          jobs: Array.from({ length: Math.max(0, 20 - inQueue) }, () => {
            return { count: 1, takes: random.between(0, HOUR), booked: random.between(0, HOUR) }
          }),
          again: now + 10 * MINUTE,
        }),
      }
      const pool = { resources: gpus(1), tenants: { x: { weight: 1 }, y: { weight: 8 } }, halfLife }
      const [, y] = new PoolWorld(pool, { x: busy, y: busy }, new SeededRandom(1)).run(16 * DAY)
      return 1 - y!.received / y!.deserved
    })
    expect(behind[0]).toBeLessThan(0.1)
    expect(behind[1]).toBeLessThan(0.02)
  })
})

/** As shown in docs/pool.md. */
function tableOf(outcomes: readonly Outcome[]): string {
  const hours = (ms: number) => `${(ms / HOUR).toFixed(1)} h`
  const rows = outcomes.map((it) => [
    it.tenant,
    String(it.weight),
    String(it.served),
    `${((100 * it.received) / it.deserved).toFixed(1)} %`,
    hours(it.meanWait),
    hours(it.longestWait),
    hours(it.longestDrought),
  ])
  const head = [
    'tenant',
    'weight',
    'jobs',
    'received of deserved',
    'mean wait',
    'longest wait',
    'longest without any',
  ]
  return [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n')
}
