import { describe, expect, it } from 'vitest'
import { Leasehold } from '../../src/index.ts'
import { memoryStore } from '../../src/stores/memory/index.ts'
import { TestClock } from '../../src/testing/index.ts'

// biome-ignore lint/suspicious/noExplicitAny: wrong arguments are what is tested
type Anything = any

const control = String.fromCharCode(1)

/** The case, the key and options, the code, and the values in the message. */
const wrongLocks: [string, Anything, Anything, string, RegExp][] = [
  ['a ttl of 0', 'k', { ttl: 0 }, 'invalid-argument', /ttl is 0ms; the minimum.*10ms/],
  ['a ttl that is not a number', 'k', { ttl: Number.NaN }, 'invalid-argument', /ttl is NaN.*'30s'/],
  ['a negative ttl', 'k', { ttl: -5 }, 'invalid-argument', /ttl is -5.*at least 0/],
  [
    'a string that is not a duration',
    'k',
    { ttl: 'soon' },
    'invalid-argument',
    /ttl is "soon".*'30s'/,
  ],
  ['a ttl without a unit', 'k', { ttl: '30' }, 'invalid-argument', /ttl is "30"/],
  ['a ttl that is too short', 'k', { ttl: 5 }, 'invalid-argument', /ttl is 5ms.*10ms/],
  ['a ttl that is too long', 'k', { ttl: '9999d' }, 'invalid-argument', /ttl is 9999d.*3650d/],
  ['a ttl that is an object', 'k', { ttl: {} }, 'invalid-argument', /ttl is an object/],
  ['a negative grace', 'k', { grace: -1 }, 'invalid-argument', /grace is -1/],
  [
    'an infinite grace',
    'k',
    { grace: 'infinite' },
    'invalid-argument',
    /grace is infinite.*finite/,
  ],
  [
    'renewEvery as long as the ttl',
    'k',
    { ttl: '5s', renewEvery: '5s' },
    'invalid-argument',
    /renewEvery 5s.*ttl 5s/,
  ],
  [
    'renewEvery longer than the ttl',
    'k',
    { ttl: '5s', renewEvery: '6s' },
    'invalid-argument',
    /renewEvery 6s.*ttl 5s.*third or a half/,
  ],
  ['renewEvery of 0', 'k', { renewEvery: 0 }, 'invalid-argument', /renewEvery 0ms.*more than 0/],
  [
    'renewEvery without automatic renewals',
    'k',
    { strategy: 'cache', renewEvery: 1000 },
    'invalid-argument',
    /renewEvery is 1000.*'cache'.*'lock'/,
  ],
  [
    'an unknown strategy',
    'k',
    { strategy: 'forever' },
    'invalid-argument',
    /"forever".*lock, election, session, reservation, cache/,
  ],
  [
    'a strategy that every object has',
    'k',
    { strategy: 'toString' },
    'invalid-argument',
    /strategy is "toString"/,
  ],
  ['a negative wait', 'k', { wait: -1 }, 'invalid-argument', /wait is -1/],
  ['a wait that is not a duration', 'k', { wait: 'a bit' }, 'invalid-argument', /wait is "a bit"/],
  [
    'a ttl longer than maxHold',
    'k',
    { ttl: '10s', maxHold: '5s' },
    'invalid-argument',
    /ttl 10s.*maxHold 5s/,
  ],
  ['maxHold of 0', 'k', { maxHold: 0 }, 'invalid-argument', /maxHold is 0ms.*10ms/],
  ['an invalid signal', 'k', { signal: 'stop' }, 'invalid-argument', /"stop".*AbortSignal/],
  ['invalid options', 'k', 30, 'invalid-argument', /options is 30.*object/],
  ['options that are null', 'k', null, 'invalid-argument', /options is null/],
  ['an empty key', '', {}, 'invalid-argument', /key is empty/],
  ['a key that is not a string', 7, {}, 'invalid-argument', /key is 7.*string/],
  ['no key', undefined, {}, 'invalid-argument', /key is undefined/],
  ['a key that is too long', 'x'.repeat(513), {}, 'invalid-argument', /513 characters.*512/],
  ['a key with a control character', `a${control}`, {}, 'invalid-argument', /control character/],
  [
    'a value that is too large',
    'k',
    { value: 'x'.repeat(65537) },
    'limit-exceeded',
    /65537.*65536/,
  ],
  ['a value that is not a string', 'k', { value: 5 }, 'invalid-argument', /value is 5/],
  ['an unknown mode', 'k', { mode: 'mine' }, 'invalid-argument', /"mine".*'shared'/],
  ['a limit without sharing', 'k', { limit: 2 }, 'invalid-argument', /limit is 2.*exclusive/],
  ['an unknown parent', 'k', { parent: 'nobody' }, 'lease-not-found', /nobody/],
  ['invalid labels', 'k', { labels: 'red' }, 'invalid-argument', /labels is "red"/],
]

describe('a wrong argument of a lock is refused, and nothing is changed', () => {
  it.each(wrongLocks)('%s', async (_what, key, options, code, message) => {
    const clock = new TestClock()
    const store = memoryStore({ clock })
    const leasehold = await Leasehold.open(store, { clock })
    for (const warm of [false, true]) {
      // Without a lease and with the shared lease, because these are different paths.
      if (warm) await leasehold.lock('warm')
      for (const call of [leasehold.lock(key, options), leasehold.tryLock(key, options)]) {
        const error = await call.then(
          () => undefined,
          (thrown) => thrown,
        )
        expect(error).toMatchObject({ code })
        expect(error.message).toMatch(message)
      }
    }
    const { leases } = await store.read({ leases: true })
    expect(leases.map((lease) => lease.claims)).toEqual([1])
  })

  it('work that is not a function', async () => {
    const leasehold = await Leasehold.open('memory:')
    const call = (leasehold as Anything).withLock('k', {}, 'work')
    await expect(call).rejects.toMatchObject({ code: 'invalid-argument' })
    await leasehold.close()
  })
})

const wrongOpens: [string, Anything, Anything, string, RegExp][] = [
  [
    'a server that is not there',
    'http://127.0.0.1:9',
    // Long enough for one refusal, even on a busy machine.
    { callTimeout: 500 },
    'timeout',
    /127.0.0.1:9.*500ms.*ECONNREFUSED.*leasehold serve/,
  ],
  ['another scheme', 'ftp://x', {}, 'invalid-argument', /"ftp:\/\/x".*'memory:'/],
  ['no scheme', './data', {}, 'invalid-argument', /"\.\/data".*'file:/],
  ['an empty string', '', {}, 'invalid-argument', /""/],
  ['a memory store with a name', 'memory:x', {}, 'invalid-argument', /"memory:x".*'memory:'/],
  ['a file store without a folder', 'file:', {}, 'invalid-argument', /"file:".*'file:.\/data'/],
  ['nothing', undefined, {}, 'invalid-argument', /store is undefined/],
  ['an object that is not a store', {}, {}, 'invalid-argument', /store is an object/],
  ['invalid options', 'memory:', null, 'invalid-argument', /options is null/],
  ['an empty holder', 'memory:', { holder: '' }, 'invalid-argument', /holder is "".*256/],
  ['a holder that is not a string', 'memory:', { holder: ['me'] }, 'invalid-argument', /holder is/],
  ['a holder that is too long', 'memory:', { holder: 'x'.repeat(257) }, 'invalid-argument', /256/],
  ['a negative drift', 'memory:', { drift: -0.1 }, 'invalid-argument', /drift is -0.1.*0 to 0.5/],
  ['a drift above a half', 'memory:', { drift: 0.6 }, 'invalid-argument', /drift is 0.6/],
  [
    'a jitter that is not a number',
    'memory:',
    { jitter: 'x' },
    'invalid-argument',
    /jitter is "x"/,
  ],
  ['a margin without end', 'memory:', { margin: 'infinite' }, 'invalid-argument', /margin is inf/],
  [
    'a callTimeout of 0',
    'memory:',
    { callTimeout: 0 },
    'invalid-argument',
    /callTimeout is 0.*'5s'/,
  ],
]

describe('a wrong argument of open is refused', () => {
  it.each(wrongOpens)('%s', async (_what, store, options, code, message) => {
    const error = await Leasehold.open(store, options).then(
      () => undefined,
      (thrown) => thrown,
    )
    expect(error).toMatchObject({ code })
    expect(error.message).toMatch(message)
  })

  it('a margin that leaves nothing of a ttl, at the first lock', async () => {
    const leasehold = await Leasehold.open('memory:', { margin: '1s' })
    await expect(leasehold.lock('k', { ttl: '1s' })).rejects.toMatchObject({
      code: 'invalid-argument',
      message: expect.stringMatching(/margin 1s.*ttl 1s/),
    })
    await leasehold.close()
  })
})
