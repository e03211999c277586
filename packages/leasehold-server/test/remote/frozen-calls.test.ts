import { isLeaseholdError, Leasehold } from 'leasehold'
import { systemClock } from 'leasehold/port'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Place, type ServerProcess } from '../setup/server-process.ts'

const place = new Place()
afterAll(() => place.clean())

/** How long after its limit a call may fail: the machine may be busy. */
const LATE_MS = 700

interface Failure {
  readonly code: string
  readonly message: string
  readonly ms: number
}

async function failureOf(call: () => Promise<unknown>): Promise<Failure> {
  const begin = systemClock.now()
  try {
    const answer = await call()
    throw new Error(`it was answered: ${JSON.stringify(answer)}`)
  } catch (error) {
    if (!isLeaseholdError(error)) throw error
    return { code: error.code, message: error.message, ms: systemClock.now() - begin }
  }
}

function expectWithin({ ms, message }: Failure, limit: number): void {
  expect(ms, message).toBeGreaterThanOrEqual(limit - 1)
  expect(ms, message).toBeLessThan(limit + LATE_MS)
}

describe('calls to a frozen server', () => {
  let server: ServerProcess
  let leasehold: Leasehold

  beforeAll(async () => {
    server = await place.server()
    leasehold = await Leasehold.open(server.url, { holder: 'me' })
    // All of the client's parts have worked once, as in a program that runs for a while.
    await leasehold.withLock('before', () => {})
    server.signal('SIGSTOP')
  })

  afterAll(async () => {
    server.signal('SIGCONT')
    await leasehold.close()
  })

  it.each<[string, (timeout: '300ms') => Promise<unknown>]>([
    ['the claim on "a"', (timeout) => leasehold.tryLock('a', { timeout })],
    ['the claim on "b"', (timeout) => leasehold.lock('b', { timeout })],
    ['the claim on "c"', (timeout) => leasehold.lock('c', { timeout, wait: '1h' })],
    ['the claim on "d"', (timeout) => leasehold.withLock('d', { timeout }, () => {})],
    ['the claim on "e", "f"', (timeout) => leasehold.lock(['e', 'f'], { timeout, ttl: '9s' })],
    [
      'the claim on "services/s/i"',
      (timeout) => leasehold.registry.register('s', { id: 'i', timeout }),
    ],
  ])('%s: fails after the timeout of the call, and says so', async (what, call) => {
    const failure = await failureOf(() => call('300ms'))
    expect(failure).toMatchObject({
      code: 'unknown-outcome',
      message: `the store did not answer ${what} within 300ms (the timeout of this call). It may have been carried out: the client removes it in the background.`,
    })
    expectWithin(failure, 300)
  })

  it.each<[string, (timeout: '300ms') => Promise<unknown>]>([
    ['registry.find', (timeout) => leasehold.registry.find('s', {}, { timeout })],
    ['registry.services', (timeout) => leasehold.registry.services({ timeout })],
    ['election.leader', (timeout) => leasehold.election('e').leader({ timeout })],
    ['sessions.get', (timeout) => leasehold.sessions('main', { timeout }).get('x')],
    ['cache.peek', (timeout) => leasehold.cache('c', { timeout }).peek('k')],
    ['pool.status', (timeout) => leasehold.pool('p').status({ timeout })],
    ['pool.tryTake', (timeout) => leasehold.pool('p').tryTake({ tenant: 't', timeout })],
  ])('%s: says that it was a read', async (_name, call) => {
    const failure = await failureOf(() => call('300ms'))
    expect(failure.code).toBe('timeout')
    expect(failure.message).toMatch(
      /^the store did not answer the read.* within 300ms \(the timeout of this call\)\. It was a read and changed nothing\.$/,
    )
    expectWithin(failure, 300)
  })

  it('a wait limits the call too: it ends after the wait if that is sooner', async () => {
    const failure = await failureOf(() => leasehold.lock('w', { wait: '400ms' }))
    expect(failure).toMatchObject({
      code: 'timeout',
      message:
        'waited 400ms for "w", and the store has not answered yet: wait longer, or try later',
    })
    expectWithin(failure, 400)
  })

  it('without a timeout they have the default of 5 s, and say that it is the default', async () => {
    const calls = await Promise.all([
      failureOf(() => leasehold.tryLock('x')),
      failureOf(() => leasehold.registry.find('s')),
      failureOf(() => leasehold.election('e').leader()),
    ])
    for (const failure of calls) {
      expect(failure.message).toContain(
        "within 5s (the default timeout; set 'timeout' to change it)",
      )
      expectWithin(failure, 5000)
    }
  })
})

describe('a client with a timeout, when its server freezes', () => {
  it('has it for every call, for release, renewal and close', async () => {
    const server = await place.server()
    const leasehold = await Leasehold.open(server.url, { timeout: '500ms' })
    const lock = await leasehold.lock('job')
    server.signal('SIGSTOP')
    try {
      const calls = await Promise.all([
        failureOf(() => leasehold.tryLock('x')),
        failureOf(() => leasehold.registry.find('s')),
        failureOf(() => lock.renew()),
        failureOf(() => lock.update('v')),
      ])
      for (const failure of calls) {
        expect(failure.message).toContain("within 500ms (the client's timeout)")
        expectWithin(failure, 500)
      }
      const renewed = await failureOf(() => lock.renew({ timeout: '200ms' }))
      expect(renewed.message).toContain('within 200ms (the timeout of this call)')
      const released = await failureOf(() => lock.release())
      expect(released.message).toContain(`the release of "job" within 500ms (the client's timeout)`)
      expectWithin(released, 500)
      const begin = systemClock.now()
      await leasehold.close()
      expect(systemClock.now() - begin).toBeLessThan(2000 + LATE_MS)
    } finally {
      server.signal('SIGCONT')
    }
  })

  it('a new client fails to open within it', async () => {
    const server = await place.server()
    server.signal('SIGSTOP')
    try {
      const failure = await failureOf(() => Leasehold.open(server.url, { timeout: '400ms' }))
      expect(failure.code).toBe('timeout')
      expect(failure.message).toContain('within 400ms')
      expect(failure.ms).toBeLessThan(400 + LATE_MS)
    } finally {
      server.signal('SIGCONT')
    }
  })

  it('leaves nothing claimed when the server continues', async () => {
    const server = await place.server()
    const leasehold = await Leasehold.open(server.url, { timeout: '300ms' })
    const other = await Leasehold.open(server.url)
    await leasehold.withLock('before', () => {})
    server.signal('SIGSTOP')
    await failureOf(() => leasehold.tryLock('key')).finally(() => server.signal('SIGCONT'))
    await using lock = await other.lock('key', { wait: '10s' })
    expect(lock.held).toBe(true)
    await leasehold.close()
    await other.close()
  })
})
