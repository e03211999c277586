import { Leasehold } from 'leasehold'
import { systemClock } from 'leasehold/port'
import { afterAll, describe, expect, it } from 'vitest'
import { Place } from '../setup/server-process.ts'

const TTL_MS = 2000
const place = new Place()
afterAll(() => place.clean())

/** The time of a notification, counted from `begin`. */
function abortDelay(signal: AbortSignal, begin: number): Promise<number> {
  const now = () => systemClock.now() - begin
  if (signal.aborted) return Promise.resolve(now())
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(now()), { once: true })
  })
}

describe('a server that is frozen', () => {
  it('notifies every holder before its ttl is over, whatever it holds', async () => {
    const server = await place.server()
    const leasehold = await Leasehold.open(server.url, { holder: 'me' })
    const lock = await leasehold.lock('job', { ttl: TTL_MS })
    const shared = await leasehold.lock(['a', 'b'], { ttl: TTL_MS, mode: 'shared' })
    const term = await leasehold.election('leader', { ttl: TTL_MS }).campaign()
    const gpus = leasehold.pool('gpu', { resources: [{ name: 'gpu-0' }] })
    const permit = await gpus.take({ tenant: 'vision', ttl: TTL_MS })
    const registration = await leasehold.registry.register('embedder', {
      address: 'http://127.0.0.1:1',
      ttl: TTL_MS,
    })
    const absent = new Promise<void>((resolve) => {
      registration.on('absent', () => resolve())
    })
    const begin = systemClock.now()
    server.signal('SIGSTOP')
    try {
      const times = await Promise.all([
        abortDelay(lock.signal, begin),
        abortDelay(shared.signal, begin),
        abortDelay(term.signal, begin),
        abortDelay(permit.signal, begin),
        absent.then(() => systemClock.now() - begin),
      ])
      for (const time of times) expect(time).toBeLessThan(TTL_MS)
      // Not too early either: the hold lasted nearly as long as possible.
      for (const time of times) expect(time).toBeGreaterThan(TTL_MS / 4)
    } finally {
      server.signal('SIGCONT')
    }
    await leasehold.close()
  })
})
