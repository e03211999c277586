import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { Client } from '../../../src/client/index.ts'
import { LeaseholdError } from '../../../src/index.ts'
import { PendingRequest } from '../../../src/recipes/pool/pending-request.ts'
import { requestOf } from '../../../src/recipes/pool/request.ts'
import { failing, gpus, testClients } from './clients.ts'

const HOUR = 3600_000
const DAY = 24 * HOUR

const caught = (error: unknown) => error

describe('a try', () => {
  it('takes a free resource, and returns it at the end of its block', async () => {
    const { store, open } = testClients()
    const { leasehold } = await open('a')
    const pool = leasehold.pool('p', gpus(1))
    {
      await using tried = await pool.tryTake({ tenant: 't' })
      expect([tried.permit!.held, tried.why]).toEqual([true, undefined])
    }
    expect((await store.read({ key: 'pool/p/r/gpu-0' })).count).toBe(0)
  })

  it('gives the reason for no permit also with an adaptive ttl', async () => {
    const { open } = testClients()
    const { leasehold } = await open('a')
    const pool = leasehold.pool('p', gpus(1))
    await pool.take({ tenant: 'x' })
    const tried = await pool.tryTake({ tenant: 'x', kind: 'k', ttl: 'adaptive' })
    expect(tried.why).toMatch(/nothing suitable is free/)
  })

  it('returns how many come first if nothing is free, and changes nothing', async () => {
    const { clock, store, open } = testClients()
    const { leasehold } = await open('a')
    const pool = leasehold.pool('p', gpus(1))
    await pool.take({ tenant: 'x' })
    pool.take({ tenant: 'x' }).catch(caught)
    await clock.settle()
    await using tried = await pool.tryTake({ tenant: 'x' })
    expect(tried.permit).toBeUndefined()
    expect(tried.why).toMatch(/nothing suitable is free, and 1 in the queue/)
    expect((await store.read({ key: 'pool/p/line' })).count).toBe(1)
  })

  it('notices a permit returned elsewhere, even without an event', async () => {
    const { clock, open } = testClients()
    const [a, b] = [await open('a'), await open('b')]
    const held = await a.leasehold.pool('p', gpus(1)).take({ tenant: 'x' })
    const pool = b.leasehold.pool('p')
    expect((await pool.tryTake({ tenant: 'x' })).permit).toBeUndefined()
    b.link.interrupt()
    await held.release()
    expect((await pool.tryTake({ tenant: 'x' })).permit?.held).toBe(true)
    await clock.advance(10_000)
  })

  it('says which holder was faster', async () => {
    const { clock, store, open } = testClients()
    const { leasehold, link } = await open('a')
    const pool = leasehold.pool('p', gpus(1))
    await pool.status()
    link.fault = (call) => (call === 'grant' ? { there: 100 } : undefined)
    const trying = pool.tryTake({ tenant: 'x' })
    await clock.advance(50)
    const claims = [{ key: 'pool/p/r/gpu-0' }]
    await store.grant({ holder: 'fast', ttl: HOUR, claims })
    await clock.advance(100)
    expect(await trying).toMatchObject({
      permit: undefined,
      why: 'pool/p/r/gpu-0 was just taken by fast',
    })
  })
})

describe('a wait', () => {
  async function waiting(options: object) {
    const made = testClients()
    const { leasehold, link } = await made.open('a')
    const pool = leasehold.pool('p', gpus(1))
    const held = await pool.take({ tenant: 'x', ttl: 'infinite' })
    let outcome: unknown
    const wait = pool.take({ tenant: 'y', ...options })
    const ended = wait.then(
      (permit) => (outcome = permit),
      (error) => (outcome = error),
    )
    await made.clock.settle()
    const inQueue = async () => (await made.store.read({ key: 'pool/p/line' })).count
    return { ...made, leasehold, link, pool, held, ended, inQueue, outcome: () => outcome }
  }

  it('ends at its timeout', async () => {
    const { clock, outcome, inQueue } = await waiting({ wait: '1m' })
    await clock.advance(59_999)
    expect(outcome()).toBeUndefined()
    expect(await inQueue()).toBe(1)
    await clock.advance(1)
    expect(outcome()).toMatchObject({ code: 'timeout' })
    expect(await inQueue()).toBe(0)
  })

  it('may last days', async () => {
    const { clock, store } = testClients()
    const room = { client: new Client(store, { clock }), name: 'p', left: () => {} }
    const request = requestOf({ tenant: 't', wait: '3d' })
    let outcome: unknown
    new PendingRequest(room as never, request).outcome.catch((error: unknown) => {
      outcome = error
    })
    await clock.advance(3 * DAY - 1)
    expect(outcome).toBeUndefined()
    await clock.advance(1)
    expect(outcome).toMatchObject({ code: 'timeout' })
  })

  it('ends with its signal and its reason, and leaves no listener', async () => {
    const stop = new AbortController()
    const { clock, outcome, inQueue, pool, held } = await waiting({ signal: stop.signal })
    stop.abort('enough')
    await clock.settle()
    expect(outcome()).toMatchObject({ code: 'aborted', cause: 'enough' })
    expect(await inQueue()).toBe(0)
    const other = new AbortController()
    const served = pool.take({ tenant: 'y', signal: other.signal })
    await clock.settle()
    await held.release()
    expect((await served).held).toBe(true)
    expect(getEventListeners(other.signal, 'abort')).toEqual([])
    const late = pool.take({ tenant: 'y', signal: AbortSignal.abort('before') })
    await expect(late).rejects.toMatchObject({ code: 'aborted', cause: 'before' })
    await clock.settle()
    expect(await inQueue()).toBe(0)
  })

  it('ends with its client', async () => {
    const { leasehold, ended, outcome } = await waiting({})
    await leasehold.close()
    await ended
    expect(outcome()).toMatchObject({
      code: 'closed',
      message: expect.stringMatching(/"y" waited/),
    })
  })

  it('ends if its queue claim is revoked, and says by whom', async () => {
    const { clock, store, outcome } = await waiting({})
    await store.revoke({ target: { key: 'pool/p/line' }, by: 'ada', why: 'cleaning' })
    await clock.advance(100)
    expect(outcome()).toMatchObject({ code: 'lost', reason: 'revoked', by: 'ada' })
  })

  it('continues if it is unknown whether it is in the queue', async () => {
    const made = testClients()
    const { leasehold, link } = await made.open('a')
    const pool = leasehold.pool('p', gpus(1))
    await pool.status()
    link.fault = (call) => (call === 'grant' ? { lost: 'request' } : undefined)
    const wait = pool.take({ tenant: 'y' })
    await made.clock.advance(5000)
    link.fault = () => undefined
    await made.clock.advance(10_000)
    expect((await wait).held).toBe(true)
    expect((await made.store.read({ key: 'pool/p/line' })).count).toBe(0)
  })

  it('fails if the store refuses it', async () => {
    const made = testClients()
    const { leasehold, link } = await made.open('a')
    const pool = leasehold.pool('p', gpus(1))
    await pool.status()
    link.fault = failing('grant')
    await expect(pool.take({ tenant: 'y' })).rejects.toMatchObject({ code: 'storage-full' })
  })
})

describe('a pool that may not be read', () => {
  it('fails, and works once access is granted', async () => {
    const { open } = testClients()
    const { leasehold, link } = await open('a')
    const error = new LeaseholdError('forbidden', 'not here')
    link.fault = (call) => (call === 'read' ? { error } : undefined)
    const pool = leasehold.pool('p', gpus(1))
    await expect(pool.take({ tenant: 'x' })).rejects.toMatchObject({ code: 'forbidden' })
    await expect(pool.status()).rejects.toMatchObject({ code: 'forbidden' })
    link.fault = () => undefined
    expect((await pool.take({ tenant: 'x' })).held).toBe(true)
  })
})

describe('the booking of a pending request', () => {
  it('is its ttl, or with a heartbeat the usual hold time of its kind', async () => {
    const { clock, store, open } = testClients()
    const { leasehold } = await open('a')
    const pool = leasehold.pool('p', gpus(1))
    const booked = async (options: object) => {
      const permit = await pool.take({ tenant: 't', ...options })
      const { claims } = await store.read({ key: permit.keys[0]! })
      await clock.advance(60_000)
      await permit.release()
      await clock.settle()
      return (JSON.parse(claims[0]!.value!) as { booked: number }).booked
    }
    const kept = { kind: 'k', strategy: 'lock', ttl: '20s' }
    expect([await booked(kept), await booked(kept), await booked(kept)]).toEqual(
      Array(3).fill(20_000),
    )
    const learnt = await booked(kept)
    expect(Math.max(learnt / 60_000, 60_000 / learnt)).toBeLessThan(1.25)
    expect(await booked({ kind: 'k', ttl: '1h' })).toBe(HOUR)
  })
})
