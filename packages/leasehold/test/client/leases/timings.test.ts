import { describe, expect, it } from 'vitest'
import {
  type Caution,
  type StrategyName,
  type TimingOptions,
  timingOf,
} from '../../../src/client/leases/timings.ts'
import { settingsOf } from '../../../src/client/settings.ts'
import { backoff, type Guarantees } from '../../../src/port/index.ts'
import { testStore } from '../../../src/testing/index.ts'

const guarantees: Guarantees = {
  ...testStore().store.guarantees,
  ttl: { min: 100, max: 3_600_000, step: 0 },
}

const timing = (options: TimingOptions, caution: Caution = { drift: 0.1, margin: undefined }) =>
  timingOf(options, caution, guarantees)

describe('the times of a lease', () => {
  it.each<[StrategyName | undefined, number, string, number]>([
    [undefined, 30_000, 'automatic', 15_000],
    ['lock', 30_000, 'automatic', 15_000],
    ['election', 9000, 'automatic', 3000],
    ['session', 1_200_000, 'activity', 60_000],
    ['reservation', 3_600_000, 'explicit', 3_600_000],
    ['cache', 600_000, 'never', 600_000],
  ])('of strategy %s are its own', (strategy, ttl, renewal, every) => {
    const options = strategy === 'election' ? { strategy, ttl } : { strategy }
    expect(timing(options)).toMatchObject({ ttl, renewal, every, grace: 0, maxHold: Infinity })
  })

  it('are ten seconds for an election by default', () => {
    expect(timing({ strategy: 'election' }).ttl).toBe(10_000)
  })

  it('count less than the ttl, by the drift and the margin', () => {
    const options = { ttl: 10_000, grace: 5000 }
    expect(timing(options, { drift: 0.1, margin: 200 })).toEqual({
      ttl: 10_000,
      grace: 5000,
      maxHold: Infinity,
      renewal: 'automatic',
      every: 5000,
      rate: 0.9,
      margin: 200,
      believed: 8800,
      kept: 13_300,
    })
  })

  it('have a margin of 5 % of the ttl, and never more than 50 ms', () => {
    expect(timing({ ttl: 200 }).margin).toBe(10)
    expect(timing({ ttl: 1000 }).margin).toBe(50)
    expect(timing({ ttl: 10_000 }).margin).toBe(50)
  })

  it('may use up to the whole ttl between renewals, less the safety margin', () => {
    const caution = { drift: 0, margin: 100 }
    expect(timing({ ttl: 1000, renewEvery: 899 }, caution).every).toBe(899)
    expect(timing({ ttl: 1000, renewEvery: 1 }, caution).every).toBe(1)
    for (const renewEvery of [0, 900, 1000]) {
      expect(() => timing({ ttl: 1000, renewEvery }, caution)).toThrowError(/renewEvery/)
    }
  })

  it.each(['session', 'reservation', 'cache'] as const)(
    'of strategy %s are not renewed by themselves',
    (strategy) => {
      expect(() => timing({ strategy, renewEvery: 1000 })).toThrowError(/renewEvery is 1000/)
    },
  )

  it('must leave something of the ttl', () => {
    expect(() => timing({ ttl: 1000 }, { drift: 0.5, margin: 500 })).toThrowError(/margin 500ms/)
    expect(timing({ ttl: 1000 }, { drift: 0.5, margin: 499 }).believed).toBe(1)
  })

  it('lie within the bounds of the store', () => {
    expect(timing({ ttl: 100 }).ttl).toBe(100)
    expect(timing({ ttl: 3_600_000 }).ttl).toBe(3_600_000)
    expect(timing({ ttl: 'infinite' }).ttl).toBe(Infinity)
    expect(() => timing({ ttl: 99 })).toThrowError(/ttl is 99ms/)
    expect(() => timing({ ttl: 3_600_001 })).toThrowError(/ttl is 3600001ms/)
  })

  it('of a strategy give way to the bounds of the store and to maxHold', () => {
    const bounds = (min: number, max: number) => ({ ...guarantees, ttl: { min, max, step: 0 } })
    const ttlOf = (options: TimingOptions, min: number, max: number) =>
      timingOf(options, { drift: 0, margin: undefined }, bounds(min, max)).ttl
    expect(ttlOf({}, 60_000, 100_000)).toBe(60_000)
    expect(ttlOf({}, 1, 20_000)).toBe(20_000)
    expect(ttlOf({ maxHold: 5000 }, 1, 20_000)).toBe(5000)
  })

  it('must not have a ttl longer than maxHold, nor a maxHold shorter than the store can keep', () => {
    expect(timing({ ttl: 1000, maxHold: 1000 })).toMatchObject({ ttl: 1000, maxHold: 1000 })
    expect(() => timing({ ttl: 1001, maxHold: 1000 })).toThrowError(/ttl 1001ms.*maxHold 1s/)
    expect(timing({ maxHold: 100 }).ttl).toBe(100)
    expect(() => timing({ maxHold: 99 })).toThrowError(/maxHold is 99ms/)
  })

  it('name a value that is not a duration', () => {
    for (const name of ['ttl', 'grace', 'renewEvery', 'maxHold'] as const) {
      expect(() => timing({ [name]: 'soon' as never })).toThrowError(`${name} is "soon"`)
    }
  })
})

describe('settings', () => {
  it('have defaults', () => {
    expect(settingsOf({})).toMatchObject({
      drift: 0.01,
      margin: undefined,
      callTimeout: 5000,
      jitter: 0.1,
      limit: { ms: 5000, chosenBy: 'default' },
      server: { accessToken: undefined },
    })
  })

  it('are taken as they are given, their bounds included', () => {
    const holder = 'x'.repeat(256)
    const given = { holder, drift: 0.5, jitter: 0, margin: 0, callTimeout: 1 }
    expect(settingsOf(given)).toMatchObject(given)
    for (const name of ['accessToken', 'token']) {
      expect(settingsOf({ [name]: 'secret' })).toMatchObject({ server: { accessToken: 'secret' } })
    }
    expect(settingsOf({ drift: 0, jitter: 0.5 })).toMatchObject({ drift: 0, jitter: 0.5 })
  })

  it.each([
    [{ holder: '' }, /holder is ""/],
    [{ holder: 'x'.repeat(257) }, /holder is "x+.*256/],
    [{ holder: 5 }, /holder is 5/],
    [{ drift: -0.01 }, /drift is -0.01.*such as 0.01/],
    [{ drift: 0.51 }, /drift is 0.51/],
    [{ jitter: '0.1' }, /jitter is "0.1".*such as 0.1/],
    [{ margin: 'infinite' }, /margin is infinite/],
    [{ margin: 'much' }, /margin is "much"/],
    [{ callTimeout: 'infinite' }, /callTimeout is "infinite"/],
    [{ callTimeout: 0 }, /callTimeout is 0/],
    [null, /options is null/],
    ['fast', /options is "fast"/],
  ])('are refused if they are %j', (options, message) => {
    const code = 'invalid-argument'
    expect(() => settingsOf(options as never)).toThrowError(expect.objectContaining({ code }))
    expect(() => settingsOf(options as never)).toThrowError(message)
  })

  it('name the holder after the machine, the process and a random part', () => {
    const random = { next: () => 0, id: () => 'abcdefghijkl' }
    expect(settingsOf({ random }).holder).toMatch(new RegExp(`^[^:]+:${process.pid}:abcdefgh$`))
  })
})

describe('the pause after failures', () => {
  const rests = (chance: number) =>
    [0, 1, 2, 6, 7, 100].map((failures) => backoff(failures, { next: () => chance, id: () => '' }))

  it('doubles with each, up to five seconds, and is half as long at the least', () => {
    expect(rests(1)).toEqual([50, 100, 200, 3200, 5000, 5000])
    expect(rests(0)).toEqual([25, 50, 100, 1600, 2500, 2500])
  })
})
