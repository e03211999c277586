import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { LeaseholdError, type RecipeEvent, type Term } from '../../../src/index.ts'
import { KEY, leading, testClients } from './clients.ts'

const caught = (error: unknown) => error

/** What the store answers to every call of this name. */
function refusing(name: string, code: 'unsupported' | 'storage-full' | 'forbidden') {
  return (call: string) =>
    call === name ? { error: new LeaseholdError(code, 'not here') } : undefined
}

describe('a campaign', () => {
  it('waits in the queue of its own key', async () => {
    const { leasehold } = await testClients().open('a')
    expect(leasehold.election('boss').key).toBe(KEY)
  })

  it('wins if the leader resigns before the timeout', async () => {
    const { clock, open } = testClients()
    const [a, b] = await Promise.all([open('a'), open('b')])
    const first = await a.leasehold.election('boss').campaign()
    const second = b.leasehold.election('boss').campaign({ wait: '1s' })
    await clock.advance(990)
    await first.resign()
    expect((await second).leading).toBe(true)
    const wrong = b.leasehold.election('boss').campaign({ wait: 'soon' as never })
    await expect(wrong).rejects.toThrow(/^wait is "soon"/)
  })

  it('that timed out in the queue has no earlier failure as its cause', async () => {
    const { clock, open } = testClients()
    const [a, b] = await Promise.all([open('a'), open('b')])
    await a.leasehold.election('boss').campaign()
    const late = b.leasehold.election('boss').campaign({ wait: '1s' }).catch(caught)
    await clock.advance(1000)
    const error = (await late) as LeaseholdError
    expect([error.code, error.cause]).toEqual(['timeout', undefined])
  })

  it('does not back off beyond its timeout', async () => {
    const { clock, open } = testClients()
    // Makes the first backoff as long as possible.
    const random = { next: () => 1, id: () => 'id' }
    const { link, leasehold } = await open('a', { random } as object)
    const { rest } = await new Promise<{ rest: number }>((resolve) => {
      link.fault = refusing('read', 'storage-full')
      leasehold.on('recipe-event', ({ detail = '' }) => {
        const [, ms] = /again in (\d+)ms/.exec(detail) ?? []
        if (ms !== undefined) resolve({ rest: Number(ms) })
      })
      leasehold.election('other').campaign().catch(caught)
      clock.advance(1)
    })
    const failed = leasehold.election('boss').campaign({ wait: rest }).catch(caught)
    await clock.advance(0)
    expect(await failed).toMatchObject({ code: 'timeout', cause: { code: 'storage-full' } })
  })

  it('is ended by its signal, with its reason and without a retry', async () => {
    const { clock, open } = testClients()
    const [a, b] = await Promise.all([open('a'), open('b')])
    await a.leasehold.election('boss').campaign()
    const stop = new AbortController()
    const stopped = b.leasehold.election('boss').campaign({ signal: stop.signal }).catch(caught)
    await clock.advance(100)
    stop.abort('enough')
    expect(await stopped).toMatchObject({
      code: 'aborted',
      cause: 'enough',
      message: 'the campaign for "boss" was aborted by its signal',
    })
    expect(b.events).toEqual(['campaigning'])
  })

  it('is ended by closing its client, without a retry', async () => {
    const { clock, open } = testClients()
    const [a, b] = await Promise.all([open('a'), open('b')])
    await a.leasehold.election('boss').campaign()
    const stopped = b.leasehold.election('boss').campaign().catch(caught)
    await clock.advance(100)
    await b.leasehold.close()
    expect(await stopped).toMatchObject({ code: 'closed' })
    expect(b.events).toEqual(['campaigning'])
  })

  it.each(['signal', 'close'] as const)(
    'is ended at once at the front too, if the store does not answer: %s',
    async (how) => {
      const { clock, open } = testClients()
      const { link, leasehold } = await open('a')
      link.fault = (call) => (call === 'update' ? { lost: 'request' } : undefined)
      const stop = new AbortController()
      let outcome: unknown
      const election = leasehold.election('boss', { ttl: '10s' })
      election.campaign({ signal: stop.signal }).catch((error: unknown) => {
        outcome = error
      })
      await clock.advance(100)
      if (how === 'signal') stop.abort()
      else leasehold.close().catch(caught)
      await clock.advance(0)
      expect(outcome).toMatchObject({ code: how === 'signal' ? 'aborted' : 'closed' })
    },
  )

  it('does not retry if the store does not support it', async () => {
    const { open } = testClients()
    const { link, leasehold, events } = await open('a')
    link.fault = refusing('grant', 'unsupported')
    const failed = leasehold.election('boss').campaign()
    await expect(failed).rejects.toMatchObject({ code: 'unsupported' })
    expect(events).toEqual(['campaigning'])
  })

  it.each(['closed', 'revoked'] as const)(
    'that is %s at any moment never reports that it leads after it reported the end',
    async (how) => {
      for (let ticks = 0; ticks < 12; ticks++) {
        const { clock, store, open } = testClients()
        const { link, leasehold, events } = await open('a')
        const end = async () => {
          for (let tick = 0; tick < ticks; tick++) await undefined
          if (how === 'closed') await leasehold.close()
          else await store.revoke({ target: { key: KEY } })
        }
        const update = link.update.bind(link)
        link.update = async (request) => {
          const answer = await update(request)
          link.update = update
          end().catch(caught)
          return answer
        }
        const stop = new AbortController()
        const { signal } = stop
        const campaign = leasehold.election('boss').campaign({ signal }).catch(caught)
        await clock.advance(10)
        stop.abort()
        const outcome = (await campaign) as Term | LeaseholdError
        if ('state' in outcome) expect(outcome.state).toBe('over')
        expect(events.at(-1)).not.toBe('elected')
      }
    },
  )
})

describe('an election without a term', () => {
  it('has nothing to resign', async () => {
    const { leasehold } = await testClients().open('a')
    const election = leasehold.election('boss')
    expect(election.term).toBeUndefined()
    await election.resign()
  })
})

describe('a loop of terms', () => {
  it('ends without an error if its signal is aborted while it is in the queue', async () => {
    const { clock, store, open } = testClients()
    const [a, b] = await Promise.all([open('a'), open('b')])
    await a.leasehold.election('boss').campaign()
    const stop = new AbortController()
    const { terms, ended } = leading(b.leasehold, {}, stop.signal)
    await clock.advance(100)
    stop.abort()
    await ended
    expect(terms).toEqual([])
    await clock.advance(100)
    expect((await store.read({ key: KEY })).count).toBe(1)
  })

  it('asks its body to end when its signal is aborted, and says why the term is over', async () => {
    const { clock, open } = testClients()
    const { leasehold, events } = await open('a')
    const stop = new AbortController()
    const { terms, ended } = leading(leasehold, {}, stop.signal)
    await clock.advance(100)
    stop.abort()
    await ended
    const reason = { code: 'lost', reason: 'released' }
    expect(terms[0]!.asked.reason).toMatchObject(reason)
    expect(terms[0]!.signal.reason).toMatchObject(reason)
    expect(events).toEqual(['campaigning', 'elected', 'asked', 'resigned'])
  })

  it('does not ask a body whose term is already over', async () => {
    const { clock, store, open } = testClients()
    const { leasehold, events } = await open('a')
    const stop = new AbortController()
    let finish = () => {}
    const loop = (async () => {
      for await (const _ of leasehold.election('boss').lead({ signal: stop.signal })) {
        await new Promise<void>((resolve) => (finish = resolve))
      }
    })()
    await clock.advance(100)
    await store.revoke({ target: { key: KEY } })
    await clock.advance(100)
    stop.abort()
    finish()
    await loop
    expect(events).toEqual(['campaigning', 'elected', 'lost'])
  })

  it('does not run for a term that is no longer wanted when it is won', async () => {
    const { clock, open } = testClients()
    const { leasehold } = await open('a')
    const stop = new AbortController()
    leasehold.on('recipe-event', ({ event }) => {
      if (event === 'elected') stop.abort()
    })
    const { terms, ended } = leading(leasehold, {}, stop.signal)
    await clock.advance(1000)
    await ended
    expect(terms).toEqual([])
  })

  it('ends with the error if a retry cannot help', async () => {
    const { open } = testClients()
    const { link, leasehold } = await open('a')
    link.fault = refusing('grant', 'unsupported')
    const { ended } = leading(leasehold)
    await expect(ended).rejects.toMatchObject({ code: 'unsupported' })
  })

  it('refuses invalid options even if its signal is already aborted', async () => {
    const { open } = testClients()
    const { leasehold } = await open('a')
    const election = leasehold.election('boss')
    await election.campaign()
    const loop = election.lead({ signal: AbortSignal.abort() })
    await expect(loop.next()).rejects.toMatchObject({ code: 'invalid-argument' })
  })

  it('leaves nothing behind at its signal, however many terms there were', async () => {
    const { clock, open } = testClients()
    const { leasehold } = await open('a')
    const stop = new AbortController()
    let terms = 0
    const loop = (async () => {
      for await (const _ of leasehold.election('boss').lead({ signal: stop.signal })) terms++
    })()
    await clock.advance(1000)
    expect(terms).toBeGreaterThan(5)
    expect(getEventListeners(stop.signal, 'abort').length).toBeLessThanOrEqual(1)
    stop.abort()
    await loop
    expect(getEventListeners(stop.signal, 'abort')).toEqual([])
  })

  it('ends with an error of its work, even a loss of something else', async () => {
    const { clock, open } = testClients()
    const { leasehold } = await open('a')
    const ended = leasehold
      .election('boss')
      .withTerms(() => {
        throw new LeaseholdError('lost', 'a lock was lost')
      })
      .catch(caught)
    await clock.advance(100)
    expect(await ended).toMatchObject({ code: 'lost', message: 'a lock was lost' })
    const after = leasehold
      .election('boss')
      .withTerms(async (term) => {
        await term.resign()
        throw new Error('after the term')
      })
      .catch(caught)
    await clock.advance(100)
    expect(await after).toMatchObject({ message: 'after the term' })
  })
})

describe('followers', () => {
  it('fail if they may not read the election', async () => {
    const { clock, open } = testClients()
    const { link, leasehold } = await open('follower')
    link.fault = refusing('read', 'forbidden')
    const loop = leasehold.election('boss').observe()[Symbol.asyncIterator]().next().catch(caught)
    await clock.advance(1000)
    expect(await loop).toMatchObject({ code: 'forbidden' })
  })

  it('get nothing after leaving the loop, and keep what they knew', async () => {
    const { clock, open } = testClients()
    const [a, follower] = await Promise.all([open('a'), open('follower')])
    const term = await a.leasehold.election('boss').campaign()
    const observed = follower.leasehold.election('boss').observe()
    for await (const leader of observed) {
      expect(leader).toMatchObject({ candidate: 'a' })
      break
    }
    expect(observed.live).toBe(false)
    await term.resign()
    await clock.advance(1000)
    expect(observed.leader()).toMatchObject({ candidate: 'a' })
  })

  it('end their loops when they are disposed or their client is closed', async () => {
    const { clock, open } = testClients()
    const { leasehold } = await open('follower')
    const follow = () => {
      const observed = leasehold.election('boss').observe()
      const loop = (async () => {
        for await (const leader of observed) expect(leader).toBeUndefined()
      })()
      return { observed, loop }
    }
    const [one, other] = [follow(), follow()]
    await clock.advance(100)
    one.observed[Symbol.dispose]()
    await one.loop
    expect(other.observed.live).toBe(true)
    await leasehold.close()
    await other.loop
  })
})

describe('the events of an election', () => {
  it('say what happened, to whom, in which term, and how much it matters', async () => {
    const { clock, store, open } = testClients()
    const { leasehold, link } = await open('a')
    const reported: RecipeEvent[] = []
    leasehold.on('recipe-event', (events) => reported.push(events))
    const term = await leasehold.election('boss').campaign()
    await store.revoke({ target: { key: KEY } })
    await clock.advance(100)
    link.fault = () => ({ error: new LeaseholdError('storage-full', 'no space') })
    const failed = leasehold.election('boss').campaign({ wait: '1s' }).catch(caught)
    await clock.advance(1000)
    await failed
    const token = term.number
    const common = { recipe: 'election', key: KEY }
    expect(reported.slice(0, 5)).toMatchObject([
      { ...common, event: 'campaigning', level: 'debug', detail: '"a" joins the election' },
      { ...common, event: 'elected', level: undefined, detail: '"a" leads', token },
      { ...common, event: 'lost', level: 'warn', token },
      { ...common, event: 'campaigning' },
      { ...common, event: 'retrying', level: 'warn' },
    ])
  })

  it('say how a term was given up: resigned, handed over, closed', async () => {
    const { clock, open } = testClients()
    const [a, b] = await Promise.all([open('a'), open('b')])
    await (await a.leasehold.election('boss').campaign()).resign()
    expect(a.events.splice(0)).toEqual(['campaigning', 'elected', 'resigned'])
    const term = await a.leasehold.election('boss').campaign()
    const { terms } = leading(b.leasehold)
    await clock.advance(100)
    await Promise.all([term.handOver('b'), clock.advance(1000)])
    expect(a.events.splice(0)).toEqual(['campaigning', 'elected', 'handed-over'])
    expect(terms).toHaveLength(1)
    await b.leasehold.close()
    expect(b.events.at(-1)).toBe('resigned')
  })

  it('say that a candidate let another pass', async () => {
    const { clock, open } = testClients()
    const [a, b, c] = await Promise.all([open('a'), open('b'), open('c')])
    const term = await a.leasehold.election('boss').campaign()
    leading(b.leasehold)
    await clock.advance(100)
    leading(c.leasehold, { priority: 1 })
    await clock.advance(100)
    await term.resign()
    await clock.advance(1000)
    expect(b.events).toEqual(['campaigning', 'stepped-behind'])
    expect(c.events).toEqual(['campaigning', 'elected'])
  })
})
