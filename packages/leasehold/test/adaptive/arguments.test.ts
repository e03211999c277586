import { describe, expect, it } from 'vitest'
import { AdaptiveTtl, isLeaseholdError } from '../../src/index.ts'

function complaint(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (isLeaseholdError(error, 'invalid-argument')) return error.message
    throw error
  }
  return 'nothing was wrong'
}

describe('invalid options', () => {
  it.each([
    [{ kind: 'a', minimum: 5 }, 'options has "minimum", which is unknown: it can have kind, min,'],
    [{ kind: '' }, 'kind is "": it must be a string of 1 to 200 characters'],
    [{ kind: 'a\nb' }, 'kind is "a\\nb": it must be a string'],
    [{}, 'kind is undefined: it must be a string'],
    [{ kind: 'a', min: '1m', max: '30s' }, 'min 1m is longer than max 30s'],
    [{ kind: 'a', min: 0 }, 'min is 0: it must be more than 0'],
    [{ kind: 'a', min: -1 }, 'min is -1: it must be at least 0 milliseconds'],
    [
      { kind: 'a', max: 'infinite' },
      'max is infinite: a dead holder would block the resource forever',
    ],
    [{ kind: 'a', part: 1 }, 'part is 1: it must be a number from 0.01 to 0.95'],
    [{ kind: 'a', renewalCost: -1 }, 'renewalCost is -1: it must be a number from 0 to'],
    [{ kind: 'a', blockedCost: Number.NaN }, 'blockedCost is NaN: it must be a number'],
    [{ kind: 'a', deathShare: 2 }, 'deathShare is 2: it must be a number from 0 to 1'],
    [{ kind: 'a', memory: 20, enough: 21 }, 'enough is 21: it must be a number from 1 to 20'],
    [{ kind: 'a', store: 5 }, 'store is min undefined, max undefined, step undefined'],
    [
      { kind: 'a', max: '1500ms', min: 1100, store: { min: 2000, max: 1e9, step: 1000 } },
      'no ttl from min 1.1s to max 1.5s can be kept by this store, which keeps 2s to',
    ],
    [null, 'options is null: it must be an object'],
  ])('%j are refused', (options, message) => {
    expect(complaint(() => new AdaptiveTtl(options as never))).toContain(message)
  })

  it('does not refuse a bound because of one that was not given', () => {
    expect(new AdaptiveTtl({ kind: 'a', max: '1s' }).choose().ttl).toBe(1000)
    expect(new AdaptiveTtl({ kind: 'a', min: '1h' }).choose().ttl).toBe(3_600_000)
  })
})

describe('invalid observations', () => {
  it.each([
    [{ held: -5, ended: 'released' }, 'held is -5'],
    [{ held: 'infinite', ended: 'released' }, 'held is infinite: give the actual time'],
    [{ held: Number.NaN, ended: 'released' }, 'held is NaN'],
    [{ held: 5, ended: 'lost' }, 'ended is "lost": it must be one of released, died, outlived'],
    [{ held: 5, ended: 'outlived' }, 'ttl is missing: give the ttl that was outlived'],
    [{ held: 5, ended: 'died', ttl: 0 }, 'ttl is 0'],
    [{ held: 5, end: 'died' }, 'observation has "end", which is unknown'],
    [undefined, 'observation is undefined: it must be an object'],
  ])('%j are refused, and nothing is learnt from them', (observation, message) => {
    const made = new AdaptiveTtl({ kind: 'a' })
    expect(complaint(() => made.observe(observation as never))).toContain(message)
    expect(made.seen).toBe(0)
  })

  it('a stored string that is not a string is refused', () => {
    expect(complaint(() => AdaptiveTtl.fromText(5 as never, { kind: 'a' }))).toContain('text is 5')
  })
})
