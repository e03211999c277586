import { describe, expect, it, vi } from 'vitest'
import type { Term } from '../../../src/index.ts'
import { KEY, leading, testClients } from './clients.ts'

describe('a step-down', () => {
  it('waits for the work of the term to end', async () => {
    const { clock, open } = testClients()
    const a = await open('a')
    const b = await open('b')
    const term = await a.leasehold.election('boss').campaign()
    const next = leading(b.leasehold)
    let finish = () => {}
    const work = term.run(async ({ token }) => {
      await new Promise<void>((resolve) => (finish = resolve))
      return token
    })
    await clock.advance(100)
    const handing = term.handOver('b', { timeout: '5s' })
    await clock.advance(3000)
    expect(term.asked.aborted).toBe(true)
    expect(term.signal.aborted).toBe(false)
    expect(term.leading).toBe(true)
    expect(next.terms).toHaveLength(0)
    finish()
    expect(await work).toBe(term.number)
    await clock.advance(100)
    expect(await handing).toMatchObject({ outcome: 'handed-over' })
    expect(next.terms[0]?.leading).toBe(true)
  })

  it('ends the term locally before it calls the store', async () => {
    const { clock, open } = testClients()
    const a = await open('a')
    const b = await open('b')
    const term = await a.leasehold.election('boss').campaign()
    const next = leading(b.leasehold)
    await clock.advance(100)
    a.link.fault = (call) => (call === 'release' ? { back: 500 } : undefined)
    let resigned = false
    const resigning = term.resign().then(() => {
      resigned = true
    })
    expect(term.leading).toBe(false)
    expect(term.signal.aborted).toBe(true)
    await clock.advance(200)
    expect(next.terms[0]?.leading).toBe(true)
    expect(resigned).toBe(false)
    await clock.advance(400)
    await resigning
  })

  it('stops work that takes longer than the limit, before anybody else leads', async () => {
    const { clock, open } = testClients()
    const a = await open('a')
    const b = await open('b')
    const term = await a.leasehold.election('boss', { drain: '1s' }).campaign()
    const next = leading(b.leasehold)
    let stopped = -1
    const work = term
      .run(async ({ signal }) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        stopped = next.terms.length
      })
      .catch((error: unknown) => error)
    await clock.advance(100)
    const resigned = term.resign()
    await clock.advance(990)
    expect(term.leading).toBe(true)
    await clock.advance(20)
    await resigned
    expect(stopped).toBe(0)
    expect(await work).toMatchObject({ code: 'lost', reason: 'released' })
    expect(next.terms[0]?.leading).toBe(true)
  })

  it('for a preferred candidate ends a term whose body does not listen', async () => {
    const { clock, open } = testClients()
    const a = await open('a')
    const b = await open('b')
    const term = await a.leasehold.election('boss', { drain: '3s' }).campaign()
    const next = leading(b.leasehold, { priority: 1, preempt: true })
    await clock.advance(2900)
    expect(term.asked.reason).toMatchObject({ code: 'lost', reason: 'superseded', by: 'b' })
    expect(term.leading).toBe(true)
    await clock.advance(200)
    expect(term.signal.reason).toMatchObject({ reason: 'superseded', by: 'b' })
    expect(next.terms[0]?.leading).toBe(true)
    expect(a.events.slice(-2)).toEqual(['asked', 'preempted'])
  })

  it('is not requested if no waiting candidate is preferred', async () => {
    const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    const { clock, open } = testClients()
    const [a, b] = await Promise.all([open('a'), open('b')])
    const term = await a.leasehold.election('boss').campaign()
    await clock.advance(100)
    leading(b.leasehold, { preempt: true })
    await clock.advance(100)
    const warnings = warn.mock.calls.length
    warn.mockRestore()
    expect([term.leading, term.asked.aborted, warnings]).toEqual([true, false, 0])
  })

  it('falls back to the queue if the successor leaves it', async () => {
    const { clock, open } = testClients()
    const [a, b, c] = await Promise.all([open('a'), open('b'), open('c')])
    const term = await a.leasehold.election('boss').campaign()
    const second = leading(b.leasehold)
    await clock.advance(100)
    leading(c.leasehold)
    await clock.advance(100)
    let finish = () => {}
    const work = term.run(() => new Promise<void>((resolve) => (finish = resolve)))
    await clock.advance(0)
    const handing = term.handOver('c', { timeout: '5s' })
    await clock.advance(100)
    await c.leasehold.close()
    finish()
    await work
    await clock.advance(1000)
    expect(await handing).toMatchObject({ outcome: 'passed-on', leader: { candidate: 'b' } })
    expect(second.terms[0]?.leading).toBe(true)
  })

  it('is unconfirmed if the successor is not seen to lead', async () => {
    const { clock, store, open } = testClients()
    const a = await open('a')
    const b = await open('b')
    const term = await a.leasehold.election('boss').campaign()
    leading(b.leasehold, { ttl: '60s' })
    await clock.advance(100)
    b.link.freeze()
    const handing = term.handOver('b', { timeout: '2s' })
    await clock.advance(2100)
    expect(await handing).toEqual({ outcome: 'unconfirmed', leader: undefined })
    expect(term.state).toBe('over')
    expect((await store.read({ key: 'election/boss/successor' })).count).toBe(0)
  })

  it('in favour of a named successor overrides priorities', async () => {
    const { clock, open } = testClients()
    const [a, b, c] = await Promise.all([open('a'), open('b'), open('c')])
    const term = await a.leasehold.election('boss').campaign()
    const high = leading(b.leasehold, { priority: 9 })
    await clock.advance(100)
    const named = leading(c.leasehold)
    await clock.advance(100)
    const handing = term.handOver('c')
    await clock.advance(100)
    expect(await handing).toMatchObject({ outcome: 'handed-over' })
    expect(named.terms[0]?.leading).toBe(true)
    expect(high.terms).toHaveLength(0)
  })

  it('ends a loop with an aborted signal when its body has ended', async () => {
    const { clock, store, open } = testClients()
    const { leasehold } = await open('a')
    const stop = new AbortController()
    const loop = leading(leasehold, {}, stop.signal)
    await clock.advance(100)
    stop.abort()
    await loop.ended
    expect(loop.terms).toHaveLength(1)
    expect((await store.read({ key: KEY })).count).toBe(0)
  })

  it('waits for all of the work, not only for the first that ends', async () => {
    const { clock, open } = testClients()
    const { leasehold } = await open('a')
    const term = await leasehold.election('boss').campaign()
    const finish: (() => void)[] = []
    const works = [1, 2].map(() => term.run(() => new Promise<void>((done) => finish.push(done))))
    const resigning = term.resign()
    await clock.settle()
    finish[0]!()
    await works[0]
    await clock.advance(100)
    expect(term.leading).toBe(true)
    finish[1]!()
    await Promise.all([works[1], resigning])
    expect(term.state).toBe('over')
  })

  it('is not shortened by a preferred candidate if the work has more time', async () => {
    const { clock, open } = testClients()
    const [a, b] = await Promise.all([open('a'), open('b')])
    const term = await a.leasehold.election('boss', { drain: '1s' }).campaign()
    let finish = () => {}
    const work = term.run(() => new Promise<void>((resolve) => (finish = resolve)))
    const resigning = term.resign({ timeout: '1m' })
    await clock.advance(10)
    leading(b.leasehold, { priority: 1, preempt: true })
    await clock.advance(5000)
    expect(term.leading).toBe(true)
    finish()
    await Promise.all([work, resigning])
    expect(term.signal.reason).toMatchObject({ code: 'lost', reason: 'released' })
    expect(a.events.filter((event) => event === 'asked')).toHaveLength(1)
  })

  it('without a limit still ends after the drain of a stopped loop', async () => {
    const { clock, open } = testClients()
    const { leasehold, events } = await open('a')
    const stop = new AbortController()
    const election = leasehold.election('boss', { drain: '1s' })
    let term: Term | undefined
    const ended = election.withTerms(
      (won) => {
        term = won
        return won.run(({ signal }) => {
          return new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
        })
      },
      { signal: stop.signal },
    )
    await clock.advance(100)
    const resigning = term!.resign({ timeout: 'infinite' })
    await clock.advance(60_000)
    expect(term!.leading).toBe(true)
    stop.abort()
    await clock.advance(999)
    expect(term!.leading).toBe(true)
    await clock.advance(1)
    expect(term!.leading).toBe(false)
    await Promise.all([resigning, ended])
    expect(events.filter((event) => event === 'asked')).toHaveLength(1)
  })

  it('does not end a term that was already lost; the loss is reported once', async () => {
    const { clock, store, open } = testClients()
    const { leasehold, events } = await open('a')
    const revoked = await leasehold.election('boss').campaign()
    await store.revoke({ target: { key: KEY } })
    await clock.advance(100)
    await revoked.resign()
    expect(events.slice(-1)).toEqual(['lost'])
    expect(revoked.signal.reason).toMatchObject({ reason: 'revoked' })
    const stalled = await leasehold.election('boss', { ttl: '1s' }).campaign()
    clock.stall(5000)
    const resigning = stalled.resign()
    expect(stalled.signal.reason).toMatchObject({ reason: 'expired' })
    await clock.advance(5000)
    await resigning
    expect(events.filter((event) => event === 'lost')).toHaveLength(2)
    expect(events).not.toContain('resigned')
  })

  it('accepts no successor before the store knows it', async () => {
    const { clock, open } = testClients()
    const [a, b] = await Promise.all([open('a'), open('b')])
    const term = await a.leasehold.election('boss').campaign()
    const next = leading(b.leasehold)
    await clock.advance(100)
    let lost = 3
    a.link.fault = (call) =>
      call === 'release' && lost-- > 0 ? { lost: 'request' as const } : undefined
    const handing = term.handOver('b', { timeout: '20s' })
    await clock.advance(20_000)
    expect(await handing).toMatchObject({ outcome: 'handed-over', leader: { candidate: 'b' } })
    expect(next.terms[0]?.leading).toBe(true)
  })

  it('names the successor as long as needed, with the timing of the term', async () => {
    const { clock, store, open } = testClients()
    const [a, b] = await Promise.all([open('a'), open('b')])
    const term = await a.leasehold.election('boss', { ttl: '7s' }).campaign()
    leading(b.leasehold, { ttl: '60s' })
    await clock.advance(100)
    b.link.freeze()
    const handing = term.handOver('b', { timeout: '2s' })
    await clock.advance(1000)
    const { claims } = await store.read({ key: 'election/boss/successor' })
    expect(claims).toHaveLength(1)
    expect((await store.read({ lease: claims[0]!.lease })).lease).toMatchObject({ ttl: 7000 })
    await clock.advance(1100)
    await handing
  })

  it('fails if another name is there for too long, and the term continues', async () => {
    const { clock, store, open } = testClients()
    const [a, b] = await Promise.all([open('a'), open('b')])
    const term = await a.leasehold.election('boss').campaign()
    leading(b.leasehold)
    await clock.advance(100)
    const claims = [{ key: 'election/boss/successor' }]
    await store.grant({ holder: 'stranger', ttl: 60_000, claims })
    const failed = term.handOver('b', { timeout: '2s' }).catch((error: unknown) => error)
    await clock.advance(2100)
    expect(await failed).toMatchObject({ code: 'timeout' })
    expect(term.leading).toBe(true)
  })
})
