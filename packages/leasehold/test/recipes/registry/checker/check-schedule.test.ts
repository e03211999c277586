import { describe, expect, it } from 'vitest'
import { type CheckChange, Leasehold, LeaseholdError, type Probe } from '../../../../src/index.ts'
import { BAD, MINUTE, OK, scene } from './scene.ts'

describe('the active phase of a checker', () => {
  it('is reported when it begins and ends, with the key of the checker', async () => {
    const { store, clock, checking } = await scene()
    const [all, some] = [checking(), checking({ service: 's' })]
    const reported: string[] = []
    for (const checker of [all, some]) {
      checker.on('active', ({ key }) => reported.push(`active ${key}`))
      checker.on('idle', ({ key }) => reported.push(`idle ${key}`))
    }
    expect([all.key, some.key, all.active]).toEqual(['checkers/all', 'checkers/of/s', false])
    await clock.advance(100)
    expect([all.active, some.active]).toEqual([true, true])
    const { claims } = await store.read({ key: 'checkers/all' })
    expect(claims[0]).toMatchObject({ holder: 'checker', value: 'checker' })
    await all.close()
    await some[Symbol.asyncDispose]()
    await clock.advance(0)
    expect([all.active, some.active]).toEqual([false, false])
    expect(reported).toEqual([
      ...['active checkers/all', 'active checkers/of/s', 'idle checkers/all', 'idle checkers/of/s'],
    ])
    expect((await store.read({ prefix: 'checkers/' })).keys).toEqual([])
  })

  it('is retried every second while the store refuses it, which is reported', async () => {
    const { clock, link, far, checking } = await scene()
    const details: unknown[] = []
    far.on('recipe-event', ({ recipe, event, key, level }) =>
      details.push({ recipe, event, key, level }),
    )
    link.fault = (call) =>
      call === 'grant' ? { error: new LeaseholdError('forbidden', 'no') } : undefined
    const checker = checking()
    await clock.advance(2500)
    expect(link.count('grant')).toBe(3)
    const reported = { recipe: 'registry', event: 'idle', key: 'checkers/all', level: 'warn' }
    expect(details).toEqual([reported, reported, reported])
    link.fault = () => undefined
    await clock.advance(1000)
    expect(checker.active).toBe(true)
    await checker.close()
  })

  it('that is lost is requested again, and nothing is checked meanwhile', async () => {
    const { store, clock, link, probes, checking, register } = await scene()
    await register('i', { tcp: true, every: '1s' })
    const checker = checking({ ttl: '5s' })
    await clock.advance(3000)
    const { claims } = await store.read({ key: checker.key })
    link.fault = (call) => (call === 'grant' ? { there: 5000 } : undefined)
    await store.revoke({ target: { lease: claims[0]!.lease } })
    await clock.advance(100)
    expect(checker.active).toBe(false)
    const { length } = probes
    await clock.advance(4000)
    expect(probes).toHaveLength(length)
    link.fault = () => undefined
    await clock.advance(5000)
    expect(checker.active).toBe(true)
    expect(probes.length).toBeGreaterThan(length)
    await checker.close()
  })

  it.each([
    [{ service: 'a/b' }, /^service /],
    [{ concurrency: 1001 }, /^concurrency /],
    [{ concurrency: 1.5 }, /^concurrency /],
    [{ everyMin: 0 }, /^everyMin /],
    [{ everyMin: '2h' }, /^everyMin /],
    [{ ttl: '9ms' }, /^ttl /],
    [{ ttl: '2h' }, /^ttl /],
    [{ brake: { least: 0 } }, /^brake\.least /],
    [5, /^options /],
  ])('is refused with %j', async (options, message) => {
    const { far } = await scene()
    expect(() => far.registry.checker(options as never)).toThrowError(message)
  })

  it('may have every option at its limit', async () => {
    const { clock, checking } = await scene()
    const least = checking({ service: 'a', concurrency: 1, everyMin: '1ms', ttl: '10ms' })
    const most = checking({ service: 'b', concurrency: 1000, everyMin: '1h', ttl: '1h' })
    await clock.advance(100)
    expect(most.active).toBe(true)
    await least.close()
    await most.close()
  })
})

describe('the check schedule', () => {
  it('begins within two seconds, and continues at the requested interval', async () => {
    const { clock, probes, checking, register } = await scene()
    await register('slow', { tcp: true, every: '10s' })
    await register('fast', { tcp: true, every: '3s' })
    await register('soon', { tcp: true, every: '1200ms' })
    const begun = clock.now()
    const checker = checking()
    await clock.advance(12_000)
    const times = (host: string) =>
      probes.filter(([looked]) => looked === host).map(([, time]) => time - begun)
    // Half of the time, because random is 0.5 here.
    expect(times('slow')).toEqual([1000, 11_000])
    expect(times('fast')).toEqual([1000, 4000, 7000, 10_000])
    expect(times('soon').slice(0, 3)).toEqual([600, 1800, 3000])
    await checker.close()
  })

  it('uses the minimum interval instead of a shorter one', async () => {
    const { clock, probes, checking, register } = await scene()
    await register('i', { tcp: true, every: '100ms' })
    const checker = checking()
    await clock.advance(5000)
    const times = probes.map(([, time]) => time)
    expect(times.slice(1).map((time, at) => time - times[at]!)).toEqual([1000, 1000, 1000, 1000])
    await checker.close()
    const other = checking({ everyMin: '500ms' })
    probes.splice(0)
    await clock.advance(1250)
    expect(probes).toHaveLength(3)
    await other.close()
  })

  it('does not probe an instance twice at a time, and drops late results', async () => {
    const { clock, probes, checking, register, let: letProbe, found } = await scene()
    const me = await register('i', { tcp: true, every: '2s', timeout: '2s', down: 1 })
    const answers: ((result: typeof BAD) => void)[] = []
    letProbe(() => new Promise((resolve) => answers.push(resolve as never)))
    const checker = checking()
    await clock.advance(1500)
    expect(probes).toHaveLength(1)
    await me.update({ weight: 2 })
    await clock.advance(100)
    expect(probes).toHaveLength(1)
    // It asks for another check, so this probe is outdated.
    await me.update({ check: { tcp: true, every: '1h', down: 1 } })
    answers[0]!(BAD)
    await clock.advance(100)
    expect(await found()).toMatchObject([{ status: 'passing' }])
    await checker.close()
  })

  it('aborts running probes when it stops', async () => {
    const { clock, checking, register, events } = await scene()
    await register('i', { tcp: true, every: '5s', timeout: '5s', down: 1 })
    const aborted: boolean[] = []
    const probe: Probe = (_target, signal) => {
      signal.addEventListener('abort', () => aborted.push(true))
      return new Promise(() => {})
    }
    const checker = checking({ probe })
    await clock.advance(3000)
    expect(aborted).toEqual([])
    await checker.close()
    expect(aborted).toEqual([true])
    await clock.advance(MINUTE)
    expect(events).toEqual([])
  })

  it('reports changes to listeners and as events, and nothing twice', async () => {
    const { clock, far, checking, register, let: letProbe, events } = await scene()
    const reported: unknown[] = []
    far.on('recipe-event', ({ recipe, event, key, detail, level }) => {
      if (key.startsWith('services/')) reported.push({ recipe, event, key, detail, level })
    })
    await register('i', { tcp: true, every: '1s', down: 1, up: 1 })
    const checker = checking()
    await clock.advance(5000)
    letProbe(async () => BAD)
    await clock.advance(5000)
    letProbe(async () => ({ status: 'warning', note: 'slow' }))
    await clock.advance(5000)
    letProbe(async () => OK)
    await clock.advance(5000)
    const common = { service: 's', id: 'i', held: false }
    expect(events).toEqual([
      { ...common, ...OK },
      { ...common, ...BAD },
      { ...common, status: 'warning', note: 'slow' },
      { ...common, ...OK },
    ])
    const about = { recipe: 'registry', key: 'services/s/i' }
    expect(reported).toEqual([
      { ...about, event: 'passing', level: 'info', detail: 'its check is passing' },
      { ...about, event: 'critical', level: 'warn', detail: 'bad' },
      { ...about, event: 'warning', level: 'warn', detail: 'slow' },
      { ...about, event: 'passing', level: 'info', detail: 'its check is passing' },
    ])
    await checker.close()
  })

  it('keeps the note of the current status while results contradict it', async () => {
    const { clock, checking, register, let: letProbe, found } = await scene()
    await register('i', { tcp: true, every: '1s', down: 2, up: 3 })
    const checker = checking()
    letProbe(async () => BAD)
    await clock.advance(5000)
    letProbe(async () => ({ status: 'warning', note: 'slow' }))
    await clock.advance(2000)
    expect(await found()).toMatchObject([{ status: 'critical', note: 'bad' }])
    await clock.advance(2000)
    expect(await found()).toMatchObject([{ status: 'warning', note: 'slow' }])
    await checker.close()
  })

  it('continues from earlier results, for the same registration only', async () => {
    const { clock, checking, register, let: letProbe, found } = await scene()
    letProbe(async () => BAD)
    await register('i', { tcp: true, every: '1s', down: 1 })
    const first = checking()
    await clock.advance(3000)
    await first.close()
    letProbe(() => new Promise(() => {}))
    const second = checking()
    await clock.advance(60)
    expect(second.active).toBe(true)
    // The old results are gone by then, and no probe has ended.
    await clock.advance(900)
    expect(await found()).toMatchObject([{ status: 'critical', note: 'bad' }])
    await second.close()
  })
})

describe('a check by ttl', () => {
  it('fails after a ttl without a report, and passes with the next report', async () => {
    const { clock, checking, register, events, probes } = await scene()
    const me = await register('i', { ttl: '10s' })
    const checker = checking()
    await clock.advance(9999)
    expect(events).toEqual([])
    await me.report('passing')
    await clock.advance(9999)
    expect(events.map(({ status }) => status)).toEqual(['passing'])
    await clock.advance(1)
    expect(events.map(({ status }) => status)).toEqual(['passing', 'critical'])
    await clock.advance(MINUTE)
    await me.update({ weight: 2 })
    await clock.advance(100)
    expect(events).toHaveLength(2)
    await me.report('passing')
    await clock.advance(100)
    expect(events.map(({ status }) => status)).toEqual(['passing', 'critical', 'passing'])
    expect(probes).toEqual([])
    await checker.close()
  })

  it('ends at once with the instance', async () => {
    const { store, clock, link, far, registry } = await scene()
    const me = await far.registry.register('s', { id: 'i', ttl: '5s', check: { ttl: '1h' } })
    const checker = registry.checker({ probe: async () => OK })
    await clock.advance(1000)
    await me.report('passing')
    await clock.advance(1000)
    expect((await store.read({ prefix: 'health/' })).keys).toHaveLength(1)
    link.freeze()
    await clock.advance(6000)
    expect((await store.read({ prefix: 'health/' })).keys).toEqual([])
    await checker.close()
  })
})

describe('an instance whose lease expired', () => {
  it('is probed once more and soon, and is critical at the first failure', async () => {
    const { store, clock, link, far } = await scene()
    const probes: number[] = []
    const checker = (await Leasehold.open(store, { clock, holder: 'other' })).registry.checker({
      brake: { hold: '30s' },
      probe: async () => {
        probes.push(clock.now())
        return probes.length > 1 ? BAD : OK
      },
    })
    const events: CheckChange[] = []
    checker.on('changed', (change) => events.push(change))
    const check = { tcp: true, every: '20s', down: 3 } as const
    const spec = { id: 'i', address: 'i:8080', ttl: '5s', check } as const
    await far.registry.register('s', spec)
    await clock.advance(2500)
    expect(probes).toHaveLength(1)
    link.freeze()
    await clock.advance(6000)
    expect(probes).toHaveLength(2)
    expect(events.at(-1)).toMatchObject({ status: 'critical', held: false })
    expect(events.at(-1)?.note).toContain('bad')
    expect(events.at(-1)?.note).not.toBe('bad')
    expect((await store.read({ prefix: 'health/' })).keys).toHaveLength(1)
    // It is forgotten when discovery no longer shows it.
    await clock.advance(31_000)
    expect((await store.read({ prefix: 'health/' })).keys).toEqual([])
    const { length } = probes
    await clock.advance(5 * MINUTE)
    expect(probes).toHaveLength(length)
    await checker.close()
  })
})

describe('an instance that asked for its lease to be revoked', () => {
  it('loses it once, or when the store is reachable again', async () => {
    const { clock, link, checking, register, let: letProbe } = await scene()
    const me = await register('i', { tcp: true, every: '200ms', down: 1, onCritical: 'revoke' })
    letProbe(async () => BAD)
    link.fault = (call) =>
      call === 'revoke' ? { error: new LeaseholdError('forbidden', 'no') } : undefined
    const checker = checking({ everyMin: '100ms' })
    await clock.advance(1000)
    const tries = link.count('revoke')
    expect(tries).toBeGreaterThan(3)
    expect(me.state).toBe('present')
    // Three probes fail while it is on its way.
    link.fault = (call) => (call === 'revoke' ? { there: 700 } : undefined)
    await clock.advance(700)
    expect(link.count('revoke')).toBe(tries + 1)
    await clock.advance(300)
    expect(me.state).toBe('ended')
    expect(me.signal.reason).toMatchObject({ by: 'checker' })
    await checker.close()
  })

  it('gets the reason in at most 256 characters', async () => {
    const { clock, checking, register, let: letProbe } = await scene()
    const me = await register('i', { tcp: true, every: '1s', down: 1, onCritical: 'revoke' })
    letProbe(async () => ({ status: 'critical', note: 'n'.repeat(300) }))
    const checker = checking()
    await clock.advance(3000)
    expect((me.signal.reason as LeaseholdError).why).toMatch(/^its health check is critical: n+$/)
    expect((me.signal.reason as LeaseholdError).why).toHaveLength(256)
    await checker.close()
  })
})
