import { describe, expect, it } from 'vitest'
import {
  type CheckChange,
  type CheckerOptions,
  type CheckStatus,
  Leasehold,
  type Probe,
} from '../../../../src/index.ts'
import { nextState } from '../../../../src/recipes/index.ts'
import { SeededRandom, testStore } from '../../../../src/testing/index.ts'

const OK = { status: 'passing', note: '' } as const
const BAD = { status: 'critical', note: 'bad' } as const

async function scene() {
  const { store, clock } = testStore()
  const open = (holder: string) =>
    Leasehold.open(store, { holder, clock, random: new SeededRandom(3) })
  const leasehold = await open('a')
  const checking = (options: CheckerOptions) => {
    const checker = leasehold.registry.checker({ brake: false, ...options })
    const events: CheckChange[] = []
    checker.on('changed', (change) => events.push(change))
    return { checker, events }
  }
  return { store, clock, open, leasehold, registry: leasehold.registry, checking }
}

describe('thresholds', () => {
  const play = (results: string, { down = 3, up = 2 } = {}) => {
    const meaning: Record<string, CheckStatus> = { o: 'passing', w: 'warning', x: 'critical' }
    let state = { status: 'passing' as CheckStatus, against: 0 }
    return [...results]
      .map((letter) => {
        state = nextState(state, meaning[letter]!, { down, up })
        return { passing: 'o', warning: 'w', critical: 'x' }[state.status]
      })
      .join('')
  }

  it.each([
    ['xxx', 'oox'],
    ['xxoxxoxxo', 'ooooooooo'],
    ['xxxoxoxoxx', 'ooxxxxxxxx'],
    ['xxxoo', 'ooxxo'],
    ['owowxw', 'owowww'],
    ['xxxww', 'ooxxw'],
  ])('turn %s into %s', (results, states) => {
    expect(play(results)).toBe(states)
  })

  it('of one follow every result', () => {
    expect(play('xoxo', { down: 1, up: 1 })).toBe('xoxo')
  })
})

describe('a checker', () => {
  it('checks at the requested interval, with jitter, but never more often than allowed', async () => {
    const { clock, registry, checking } = await scene()
    const times: Record<string, number[]> = { slow: [], fast: [] }
    const { checker } = checking({
      probe: async ({ host }) => {
        times[host]!.push(clock.now())
        return OK
      },
    })
    for (const [id, every] of [
      ['slow', '10s'],
      ['fast', '10ms'],
    ] as const) {
      await registry.register('s', { id, address: `${id}:8080`, check: { tcp: true, every } })
    }
    await clock.advance(100_000)
    const gaps = (list: number[]) => list.slice(1).map((time, i) => time - list[i]!)
    expect(times['slow']!.length).toBeGreaterThanOrEqual(10)
    expect(times['slow']![0]! - 1_000_000).toBeLessThan(2100)
    for (const gap of gaps(times['slow']!)) {
      expect(gap).toBeGreaterThanOrEqual(9000)
      expect(gap).toBeLessThanOrEqual(11_000)
    }
    expect(new Set(gaps(times['slow']!)).size).toBeGreaterThan(5)
    expect(Math.min(...gaps(times['fast']!))).toBeGreaterThanOrEqual(900)
    await checker.close()
  })

  it('respects its concurrency, and leaves no instance out', async () => {
    const { clock, registry, checking } = await scene()
    let now = 0
    let most = 0
    const probes: Record<string, number> = {}
    const probe: Probe = async ({ host }) => {
      probes[host] = (probes[host] ?? 0) + 1
      most = Math.max(most, ++now)
      await new Promise<void>((resolve) => void clock.timer(clock.now() + 300, resolve))
      now--
      return OK
    }
    const { checker } = checking({ probe, concurrency: 5 })
    for (let i = 0; i < 40; i++) {
      const address = `h${i}:8080`
      await registry.register('s', { address, check: { tcp: true, every: '1s' } })
    }
    await clock.advance(30_000)
    expect(most).toBe(5)
    // 40 instances want a probe per second, but five probes of 300 ms run at a time: about twelve
    // each in 30 s.
    expect(Object.keys(probes)).toHaveLength(40)
    expect(Math.min(...Object.values(probes))).toBeGreaterThan(9)
    await checker.close()
  })

  it('counts a probe that times out as failed, even if it never ends', async () => {
    const { clock, registry, checking } = await scene()
    const aborted: boolean[] = []
    const probe: Probe = (_, signal) => {
      signal.addEventListener('abort', () => aborted.push(true))
      return new Promise(() => {})
    }
    const { checker, events } = checking({ probe })
    const check = { tcp: true, every: '5s', timeout: '1s', down: 1 } as const
    await registry.register('s', { id: 'i', address: 'a:8080', check })
    await clock.advance(20_000)
    expect(aborted.length).toBeGreaterThan(2)
    expect(events).toMatchObject([
      { id: 'i', status: 'critical', note: 'no answer within 1000 ms' },
    ])
    await checker.close()
  })

  it('survives a probe that throws', async () => {
    const { clock, registry, checking } = await scene()
    const probe: Probe = async () => {
      throw new Error('oh\nno')
    }
    const { checker } = checking({ probe })
    const check = { tcp: true, down: 1 } as const
    await registry.register('s', { id: 'i', address: 'a:8080', check })
    await clock.advance(20_000)
    const [found] = await registry.find('s', { status: 'critical' })
    expect(found?.note).toBe('the probe failed: Error: oh no')
    await checker.close()
  })

  it('writes changes and nothing else', async () => {
    const { store, clock, registry, checking } = await scene()
    const { checker } = checking({ probe: async () => OK })
    const check = { tcp: true, every: '1s' } as const
    await registry.register('s', { id: 'i', address: 'a:8080', check })
    await clock.advance(10_000)
    const { revision } = await store.read({ prefix: 'health/' })
    await clock.advance(600_000)
    const after = await store.read({ prefix: 'health/' })
    expect(after.revision).toBe(revision)
    expect(after.keys).toHaveLength(1)
    await checker.close()
  })

  it('forgets instances that leave, and their results', async () => {
    const { store, clock, registry, checking } = await scene()
    const { checker } = checking({ probe: async () => BAD })
    const check = { tcp: true, down: 1 } as const
    const me = await registry.register('s', { id: 'i', address: 'a:8080', check })
    await clock.advance(10_000)
    await me.release()
    await clock.advance(10)
    expect((await store.read({ prefix: 'health/' })).keys).toEqual([])
    // Another instance with the same id starts again.
    await registry.register('s', { id: 'i', address: 'a:8080', check: { tcp: true, down: 100 } })
    await clock.advance(10_000)
    expect(await registry.find('s')).toMatchObject([{ id: 'i', status: 'passing' }])
    await checker.close()
  })

  it('starts again when an instance changes its check, and stops when it has none', async () => {
    const { clock, registry, checking } = await scene()
    const paths: string[] = []
    const { checker } = checking({
      probe: async ({ path }) => {
        paths.push(path)
        return OK
      },
    })
    const check = { http: '/a', every: '1s' } as const
    const me = await registry.register('s', { id: 'i', address: 'a:8080', check })
    await clock.advance(5000)
    await me.update({ check: { http: '/b', every: '1s' } })
    await clock.advance(5000)
    await me.update({ check: undefined })
    const { length } = paths
    await clock.advance(60_000)
    expect([...new Set(paths)]).toEqual(['/a', '/b'])
    expect(paths).toHaveLength(length)
    await checker.close()
  })

  it('of one service leaves the others alone', async () => {
    const { clock, registry, checking } = await scene()
    const hosts = new Set<string>()
    const probe: Probe = async ({ host }) => {
      hosts.add(host)
      return OK
    }
    const { checker } = checking({ probe, service: 's' })
    await registry.register('s', { address: 'a:8080', check: { tcp: true } })
    await registry.register('st', { address: 'b:8080', check: { tcp: true } })
    await clock.advance(30_000)
    expect([...hosts]).toEqual(['a'])
    await checker.close()
  })

  it('lets the next take over at once when it is closed; its results stay meanwhile', async () => {
    const { clock, open, registry, checking } = await scene()
    const { checker } = checking({ probe: async () => BAD })
    const other = (await open('b')).registry.checker({ probe: async () => BAD, brake: false })
    const check = { tcp: true, down: 1, every: '1h' } as const
    await registry.register('s', { id: 'i', address: 'a:8080', check })
    await clock.advance(10_000)
    expect([checker.active, other.active]).toEqual([true, false])
    const statuses = new Set<string>()
    const watch = registry.watch('s', { status: 'any' })
    for (const type of ['joined', 'changed'] as const) {
      watch.on(type, ({ instance }) => statuses.add(instance.status))
    }
    await checker.close()
    await clock.advance(100)
    expect([checker.active, other.active]).toEqual([false, true])
    // Long after the results of the first expired, and long before the next check is due.
    await clock.advance(50 * 60_000)
    expect(watch.all).toMatchObject([{ status: 'critical' }])
    expect([...statuses]).toEqual(['critical'])
    await other.close()
  })

  it('overrides its predecessor while the old results still exist', async () => {
    const { clock, open, registry, checking } = await scene()
    const { checker } = checking({ probe: async () => BAD })
    const check = { tcp: true, down: 1, up: 1, every: '2s' } as const
    await registry.register('s', { id: 'i', address: 'a:8080', check })
    await clock.advance(5000)
    await checker.close()
    const next = (await open('b')).registry.checker({ probe: async () => OK, brake: false })
    await clock.advance(5000)
    // The old result, critical, stays for half a minute.
    expect(await registry.find('s')).toMatchObject([{ id: 'i', status: 'passing' }])
    await next.close()
  })

  it('ends with its client', async () => {
    const { clock, leasehold, checking } = await scene()
    const { checker } = checking({ probe: async () => OK })
    await clock.advance(10)
    await leasehold.close()
    await clock.advance(10_000)
    await checker.close()
    expect(checker.active).toBe(false)
  })

  it.each([
    [{ concurrency: 0 }, /concurrency is 0/],
    [{ everyMin: 'often' }, /everyMin is "often"/],
    [{ allow: { schemes: ['ftp'] } }, /"ftp"/],
    [{ allow: { ports: [0] } }, /a port in allow.ports is 0/],
    [{ brake: { share: 2 } }, /brake.share is 2/],
    [{ ttl: 0 }, /ttl is 0/],
    [{ service: 'a/b' }, /not contain a slash/],
  ])('refuses %j', async (options, message) => {
    const { registry } = await scene()
    expect(() => registry.checker(options as never)).toThrowError(message)
  })
})

describe('an instance that asks for a check', () => {
  it('has its initial status until the first probe', async () => {
    const { registry } = await scene()
    const check = { tcp: true, initially: 'critical' } as const
    await registry.register('s', { id: 'doubted', address: 'a:8080', check })
    await registry.register('s', { id: 'trusted', address: 'a:8080', check: { tcp: true } })
    expect((await registry.find('s')).map(({ id }) => id)).toEqual(['trusted'])
  })

  it('may report a ttl check often: few reports are written', async () => {
    const { store, clock, registry } = await scene()
    const me = await registry.register('s', { id: 'i', check: { ttl: '30s' } })
    const { revision } = await store.read({ prefix: '' })
    for (let i = 0; i < 600; i++) {
      await me.report('passing')
      await clock.advance(100)
    }
    expect((await store.read({ prefix: '' })).revision - revision).toBeLessThanOrEqual(7)
  })
})
