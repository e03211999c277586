import type { Leasehold } from 'leasehold'
import type { Fence } from 'leasehold/fence'

/** How long one task may wait for its turn. */
const WAIT = '5s'

export interface WorkDependencies {
  readonly leasehold: Leasehold
  readonly fence: Fence
  /** The URL for the health checks of registered instances. */
  readonly checked: string
  /** A number from 0 up to, but not including, 1. */
  readonly random: () => number
}

type Work = (dependencies: WorkDependencies) => Promise<void>

/** One task for each recipe. Each releases what it took, even if it fails. */
const WORKS: Readonly<Record<string, Work>> = {
  lock: async ({ leasehold, fence, random }) => {
    const key = `soak/lock/${Math.floor(random() * 5)}`
    await leasehold.withLock(key, { ttl: '5s', wait: WAIT }, async (lock) => {
      await fence.admit(key, lock.token)
      await pause(random() * 50)
    })
  },
  'try-lock': async ({ leasehold }) => {
    await using _attempt = await leasehold.tryLock(['soak/one', 'soak/two'], { ttl: '5s' })
  },
  shared: async ({ leasehold, random }) => {
    const options = { mode: 'shared', limit: 3, ttl: '5s', wait: WAIT } as const
    await leasehold.withLock('soak/shared', options, () => pause(random() * 50))
  },
  adaptive: async ({ leasehold, random }) => {
    const options = { ttl: 'adaptive', kind: 'soak', wait: WAIT } as const
    await leasehold.withLock('soak/adaptive', options, () => pause(random() * 30))
  },
  election: async ({ leasehold, random }) => {
    const election = leasehold.election('soak', { ttl: '5s' })
    using _observation = election.observe()
    await using _term = await election.campaign({ wait: WAIT })
    await pause(random() * 50)
  },
  registry: async ({ leasehold, checked, random }) => {
    const service = `soak-${Math.floor(random() * 3)}`
    using discovery = leasehold.registry.watch(service)
    await discovery.ready
    const check = { http: checked, every: '1s' } as const
    await using _registration = await leasehold.registry.register(service, {
      address: checked,
      ttl: '5s',
      check,
    })
    await leasehold.registry.find(service)
    await pause(200 + random() * 2000)
  },
  pool: async ({ leasehold, random }) => {
    const resources = [{ name: 'a' }, { name: 'b' }, { name: 'c' }]
    const pool = leasehold.pool('soak', { resources })
    const tenant = `tenant-${Math.floor(random() * 3)}`
    await using _permit = await pool.take({ tenant, kind: 'soak', ttl: '5s', wait: WAIT })
    await pause(random() * 50)
  },
  session: async ({ leasehold, random }) => {
    const sessions = leasehold.sessions<{ count: number }>('soak', { ttl: '5s' })
    const session = await sessions.create({
      user: `user-${Math.floor(random() * 5)}`,
      data: { count: 0 },
    })
    await (await sessions.get(session.id))?.touch()
    await session.save({ count: 1 })
    // Let some expire, as people leave theirs.
    if (random() < 0.7) await session.end()
  },
  cache: async ({ leasehold, random }) => {
    const cache = leasehold.cache<string>('soak', { ttl: '2s', wait: WAIT })
    await cache.get(`key-${Math.floor(random() * 20)}`, async () => 'x'.repeat(200))
  },
}

export const WORK_NAMES = Object.keys(WORKS)

/** Errors that competition or a killed process may cause: they are counted, but are no failures. */
const EXPECTED = new Set(['timeout', 'lost', 'lapsed', 'closed', 'aborted'])

export class Tally {
  done = 0
  missed = 0
  readonly errors = new Map<string, number>()

  run(name: string, dependencies: WorkDependencies): Promise<void> {
    return this.attempt(name, () => WORKS[name]!(dependencies))
  }

  async attempt(name: string, work: () => Promise<void>): Promise<void> {
    try {
      await work()
      this.done++
    } catch (error) {
      const { code, message } = error as { code?: string; message?: string }
      if (code !== undefined && EXPECTED.has(code)) this.missed++
      else this.#fail(`${name}: ${code ?? ''} ${message ?? String(error)}`)
    }
  }

  #fail(message: string): void {
    const key = message.slice(0, 200)
    if (this.errors.size < 20) this.errors.set(key, (this.errors.get(key) ?? 0) + 1)
  }
}

export function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds))
}
