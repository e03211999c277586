import { describe, expect, it } from 'vitest'
import { type ElectionOptions, LeaseholdError, type Term } from '../../../src/index.ts'
import { KEY, leading, testClients } from './clients.ts'

describe('a leader whose store fails', () => {
  it('notices before the end of its ttl that the store is frozen', async () => {
    const { clock, open } = testClients()
    const { link, leasehold } = await open('a')
    const { terms } = leading(leasehold)
    await clock.advance(5000)
    const [term] = terms
    expect(term!.leading).toBe(true)
    const { signal } = term!
    let toldAt = Infinity
    signal.addEventListener('abort', () => {
      toldAt = clock.now()
    })
    link.freeze()
    const frozenAt = clock.now()
    await clock.advance(2000)
    expect(toldAt - frozenAt).toBeLessThan(2000)
    expect(signal.reason).toMatchObject({ code: 'lost', reason: 'unreachable' })
    expect(() => term!.token).toThrowError(expect.objectContaining({ code: 'lost' }))
  })

  it('leads again after an outage far longer than its ttl', async () => {
    const { clock, open } = testClients()
    const { link, leasehold, events } = await open('a')
    const { terms } = leading(leasehold)
    await clock.advance(100)
    link.freeze()
    link.interrupt()
    await clock.advance(60_000)
    expect(terms).toHaveLength(1)
    expect(terms[0]!.leading).toBe(false)
    expect(events).toContain('lost')
    expect(events.filter((event) => event === 'retrying').length).toBeGreaterThan(2)
    link.thaw()
    await clock.advance(10_000)
    expect(terms).toHaveLength(2)
    expect(terms[1]!.token).toBeGreaterThan(terms[0]!.number)
    expect(events.filter((event) => event === 'elected')).toHaveLength(2)
  })

  it('is followed by a connected candidate, and joins the queue behind it', async () => {
    const { clock, store, open } = testClients()
    const a = await open('a')
    const b = await open('b')
    const first = leading(a.leasehold)
    await clock.advance(100)
    const second = leading(b.leasehold)
    await clock.advance(100)
    a.link.freeze()
    await clock.advance(2100)
    expect(second.terms[0]?.leading).toBe(true)
    expect(first.terms[0]!.leading).toBe(false)
    a.link.thaw()
    await clock.advance(10_000)
    const { claims } = await store.read({ key: KEY })
    expect(claims.map(({ holder }) => holder)).toEqual(['b', 'a'])
    expect(second.terms).toHaveLength(1)
  })

  it.each(['grant', 'read', 'update'] as const)(
    'does not stop for good when the store refuses every %s for a while',
    async (failing) => {
      const { clock, open } = testClients()
      const { link, leasehold, events } = await open('a')
      link.fault = (call) =>
        call === failing ? { error: new LeaseholdError('storage-full', 'no space') } : undefined
      const { terms } = leading(leasehold)
      await clock.advance(20_000)
      expect(terms).toHaveLength(0)
      expect(events).toContain('retrying')
      expect(link.count(failing)).toBeLessThan(30)
      link.fault = () => undefined
      await clock.advance(6000)
      expect(terms[0]?.leading).toBe(true)
    },
  )

  it('knows on the first statement after a stall that it has lost the term', async () => {
    const { clock, open } = testClients()
    const { leasehold } = await open('a')
    const { terms } = leading(leasehold, { ttl: '1s' })
    await clock.advance(500)
    const [term] = terms
    clock.stall(2500)
    expect(term!.signal.aborted).toBe(true)
    expect(term!.leading).toBe(false)
    expect(term!.asked.aborted).toBe(true)
    await clock.advance(3000)
    expect(terms[1]!.leading).toBe(true)
  })

  it('lapses within its grace and recovers with the same number', async () => {
    const { clock, open } = testClients()
    const { link, leasehold } = await open('a')
    const { terms } = leading(leasehold, { grace: '10s' })
    await clock.advance(100)
    const { number } = terms[0]!
    link.freeze()
    await clock.advance(2500)
    expect(terms[0]!.state).toBe('lapsed')
    expect(() => terms[0]!.token).toThrowError(expect.objectContaining({ code: 'lapsed' }))
    expect(terms[0]!.signal.aborted).toBe(false)
    link.thaw()
    await clock.advance(2500)
    expect(terms[0]!.token).toBe(number)
    expect(terms).toHaveLength(1)
  })

  it('ends when it is revoked, and says by whom', async () => {
    const { clock, store, open } = testClients()
    const { leasehold } = await open('a')
    const { terms } = leading(leasehold)
    await clock.advance(100)
    await store.revoke({ target: { key: KEY }, by: 'ada', why: 'maintenance' })
    await clock.advance(1000)
    expect(terms[0]!.signal.reason).toMatchObject({ reason: 'revoked', by: 'ada' })
    expect(terms[1]!.leading).toBe(true)
  })
})

describe('followers', () => {
  it('see the last known state during an outage, and its age', async () => {
    const { clock, open } = testClients()
    const a = await open('a')
    const b = await open('b')
    const follower = await open('follower')
    const observed = follower.leasehold.election('boss').observe()
    const first = leading(a.leasehold)
    await clock.advance(1000)
    expect(observed.leader()).toMatchObject({ candidate: 'a', term: first.terms[0]!.number })
    follower.link.freeze()
    leading(b.leasehold)
    await clock.advance(100)
    await a.leasehold.close()
    await clock.advance(29_900)
    expect(observed.leader()).toMatchObject({ candidate: 'a' })
    expect(observed.leader()!.age).toBeGreaterThan(27_000)
    follower.link.thaw()
    await clock.advance(10_000)
    expect(observed.leader()).toMatchObject({ candidate: 'b' })
    expect(observed.age()).toBeLessThan(5000)
  })

  it('see since when a leader leads that waited in the queue', async () => {
    const { clock, store, open } = testClients()
    const [a, b, follower] = await Promise.all([open('a'), open('b'), open('follower')])
    const observed = follower.leasehold.election('boss').observe()
    const term = await a.leasehold.election('boss').campaign()
    leading(b.leasehold)
    await clock.advance(5000)
    const resignedAt = clock.now()
    await term.resign()
    await clock.advance(1000)
    expect(observed.leader()).toMatchObject({ candidate: 'b', since: resignedAt })
    const { claims } = await store.read({ key: KEY })
    expect(claims[0]!.heldSince).toBe(resignedAt)
    expect(claims[0]!.claimedAt).toBeLessThan(resignedAt)
  })

  it('get each change once, and nothing after they have left', async () => {
    const { clock, open } = testClients()
    const { leasehold } = await open('a')
    const stop = new AbortController()
    const reported: (string | undefined)[] = []
    const observing = (async () => {
      const election = (await open('follower')).leasehold.election('boss')
      for await (const leader of election.observe({ signal: stop.signal })) {
        reported.push(leader && `${leader.candidate} ${leader.value}`)
      }
    })()
    await clock.advance(100)
    const term = await leasehold.election('boss', { value: '1' }).campaign()
    await clock.advance(100)
    await term.proclaim('2')
    await term.proclaim('2')
    await clock.advance(100)
    await term.resign()
    await clock.advance(100)
    expect(reported).toEqual([undefined, 'a 1', 'a 2', undefined])
    stop.abort()
    await observing
  })

  it('do not take a foreign claim for a leader', async () => {
    const { clock, store, open } = testClients()
    await store.grant({ holder: 'x', ttl: 60_000, claims: [{ key: KEY, value: 'not {json' }] })
    const { leasehold } = await open('follower')
    expect(await leasehold.election('boss').leader()).toBeUndefined()
    const observed = leasehold.election('boss').observe()
    await clock.advance(100)
    expect(observed.leader()).toBeUndefined()
  })
})

describe('a loop of terms', () => {
  it('resigns when its body ends, also by an error, and can start again', async () => {
    const { clock, store, open } = testClients()
    const { leasehold } = await open('a')
    const election = leasehold.election('boss')
    let last: Term | undefined
    const broken = (async () => {
      for await (const term of election.lead()) {
        last = term
        throw new Error('bad body')
      }
    })().catch((error: unknown) => error)
    await clock.advance(100)
    expect(await broken).toMatchObject({ message: 'bad body' })
    expect(last!.leading).toBe(false)
    expect((await store.read({ key: KEY })).count).toBe(0)
    for await (const term of election.lead()) {
      expect(term.token).toBeGreaterThan(last!.number)
      break
    }
    expect(election.term).toBeUndefined()
  })

  it('continues after work that failed with its term, and ends with any other error', async () => {
    const { clock, store, open } = testClients()
    const { leasehold } = await open('a')
    const terms: Term[] = []
    const ended = leasehold
      .election('boss')
      .withTerms(async (term) => {
        terms.push(term)
        if (terms.length === 3) throw new Error('bad work')
        await term.run(({ signal }) => {
          return new Promise((resolve) => signal.addEventListener('abort', resolve))
        })
      })
      .catch((error: unknown) => error)
    for (const number of [1, 2]) {
      await clock.advance(1000)
      expect(terms).toHaveLength(number)
      await store.revoke({ target: { key: KEY } })
    }
    await clock.advance(1000)
    expect(await ended).toMatchObject({ message: 'bad work' })
    expect(terms[2]!.state).toBe('over')
    await expect(leasehold.election('boss').withTerms(7 as never)).rejects.toThrowError(/is 7/)
  })

  it('limits the rate of terms if its body ends at once', async () => {
    const { clock, open } = testClients()
    const { leasehold } = await open('a')
    let terms = 0
    const stop = new AbortController()
    const loop = (async () => {
      for await (const term of leasehold.election('boss').lead({ signal: stop.signal })) {
        if (term.leading) terms++
      }
    })()
    await clock.advance(1000)
    expect(terms).toBeGreaterThan(5)
    expect(terms).toBeLessThan(12)
    stop.abort()
    await loop
  })

  it('does not run for a candidate that lost its claim before taking the term', async () => {
    const { clock, open } = testClients()
    const a = await open('a')
    const b = await open('b')
    const first = await a.leasehold.election('boss').campaign()
    const second = leading(b.leasehold)
    await clock.advance(100)
    // It reaches the front, but its update does not get through until its lease is lost.
    b.link.fault = (call) => (call === 'update' ? { there: 5000 } : undefined)
    const isRenewed = b.link.renew.bind(b.link)
    b.link.renew = (leases) => (first.leading ? isRenewed(leases) : new Promise(() => {}))
    await first.resign()
    await clock.advance(6000)
    expect(second.terms).toHaveLength(0)
    expect(b.events).toContain('retrying')
  })
})

describe('a campaign', () => {
  it('ends at its timeout or signal, and leaves no claim in the queue', async () => {
    const { clock, store, open } = testClients()
    const a = await open('a')
    const b = await open('b')
    await a.leasehold.election('boss').campaign()
    const election = b.leasehold.election('boss')
    const late = election.campaign({ wait: '1s' }).catch((error: unknown) => error)
    await clock.advance(1100)
    expect(await late).toMatchObject({ code: 'timeout' })
    const stop = new AbortController()
    const stopped = election.campaign({ signal: stop.signal }).catch((error: unknown) => error)
    await clock.advance(100)
    stop.abort()
    expect(await stopped).toMatchObject({ code: 'aborted' })
    await clock.advance(100)
    expect((await store.read({ key: KEY })).count).toBe(1)
  })

  it('ends at once during a backoff: by timeout, by its signal, by closing', async () => {
    const { clock, open } = testClients()
    const { link, leasehold } = await open('a')
    link.fault = () => ({ error: new LeaseholdError('storage-full', 'no space') })
    const election = leasehold.election('boss')
    const caught = (error: unknown) => error
    const late = election.campaign({ wait: '10s' }).catch(caught)
    await clock.advance(10_000)
    expect(await late).toMatchObject({ code: 'timeout', cause: { code: 'storage-full' } })
    const stop = new AbortController()
    const stopped = election.campaign({ signal: stop.signal }).catch(caught)
    await clock.advance(20_000)
    stop.abort()
    expect(await stopped).toMatchObject({ code: 'aborted' })
    const closed = election.campaign().catch(caught)
    await clock.advance(20_000)
    await leasehold.close()
    expect(await closed).toMatchObject({ code: 'closed' })
  })
})

describe('wrong use', () => {
  it.each<[string, unknown, RegExp]>([
    ['', {}, /the election's name is "": give a string of 1 to 256 characters/],
    ['x', null, /options is null: it must be an object/],
    ['x', { candidate: '' }, /candidate is "": give a string/],
    ['x', { priority: Number.NaN }, /priority is NaN: it must be a finite number/],
    ['x', { preempt: 'yes' }, /preempt is "yes": it must be true or false/],
    ['x', { value: 7 }, /value is 7: it must be a string/],
    ['x', { drain: 'soon' }, /drain is "soon": give milliseconds/],
    ['x', { ttl: 'infinite' }, /ttl is infinite: nobody could ever follow/],
    ['x', { ttl: Infinity }, /ttl is infinite: nobody could ever follow/],
  ])('is refused: %s %j', async (name, options, message) => {
    const { leasehold } = await testClients().open('a')
    expect(() => leasehold.election(name, options as ElectionOptions)).toThrowError(message)
  })

  it('is refused by campaign, with the reason', async () => {
    const { leasehold } = await testClients().open('a')
    const caught = (error: unknown) => error
    const timing = await leasehold
      .election('boss', { ttl: '2s', renewEvery: '3s' })
      .campaign()
      .catch(caught)
    expect(timing).toMatchObject({ code: 'invalid-argument' })
    const election = leasehold.election('boss')
    const signal = await election.campaign({ signal: 'now' as never }).catch(caught)
    expect(signal).toMatchObject({ message: 'signal is "now": it must be an AbortSignal' })
    expect(() => election.observe({ signal: 7 as never })).toThrowError(/signal is 7/)
    const [first, second] = await Promise.all([
      election.campaign(),
      election.campaign().catch(caught),
    ])
    expect(second).toMatchObject({ message: expect.stringMatching(/is campaigning for "boss"/) })
    expect(await election.campaign().catch(caught)).toMatchObject({
      message: expect.stringMatching(/"a" leads "boss" already/),
    })
    const term = first as Term
    await expect(term.handOver('a')).rejects.toThrowError(/which leads already/)
    await expect(term.handOver('b', { within: -2 })).rejects.toThrowError(/timeout is -2/)
    await expect(term.handOver('b', { timeout: -1 })).rejects.toThrowError(/timeout is -1/)
    await expect(term.run(7 as never)).rejects.toThrowError(/the work is 7: give a function/)
    await expect(term.proclaim(7 as never)).rejects.toThrowError(/value is 7/)
    await term.resign()
    await term.resign()
    await expect(term.run(() => 1)).rejects.toThrowError(/was resigned/)
    await expect(term.handOver('b')).rejects.toThrowError(/was resigned/)
    await expect(election.proclaim('x')).rejects.toMatchObject({ code: 'claim-not-found' })
    await election.resign()
  })
})
