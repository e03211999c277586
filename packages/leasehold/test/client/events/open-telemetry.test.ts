import { describe, expect, it } from 'vitest'
import { Leasehold, openTelemetry } from '../../../src/index.ts'
import { testStore } from '../../../src/testing/index.ts'

interface Span {
  readonly name: string
  readonly context: unknown
  readonly attributes: Record<string, unknown>
  readonly status?: { code: number; message?: string }
  ended: number
}

/** An api that records all calls, by the names of spans and instruments. */
function recorder() {
  const spans: Span[] = []
  const instruments = new Map<string, { kind: string; unit: string | undefined }>()
  const descriptions = new Map<string, string | undefined>()
  const measured: Record<string, { value: number; attributes: unknown }[]> = {}
  const scopes: string[] = []
  const instrument =
    (kind: string) => (name: string, options?: { unit?: string; description?: string }) => {
      descriptions.set(name, options?.description)
      instruments.set(name, { kind, unit: options?.unit })
      measured[name] = []
      const note = (value: number, attributes?: unknown) =>
        void measured[name]!.push({ value, attributes })
      return { add: note, record: note }
    }
  const api = {
    trace: {
      getTracer: (scope: string) => {
        scopes.push(scope)
        return {
          startSpan: (name: string, options: { attributes: object }, context: unknown) => {
            const span: Span = { name, context, attributes: { ...options.attributes }, ended: 0 }
            spans.push(span)
            return {
              setAttributes: (more: object) => void Object.assign(span.attributes, more),
              setStatus: (status: { code: number }) => void Object.assign(span, { status }),
              end: () => void span.ended++,
            }
          },
        }
      },
    },
    metrics: {
      getMeter: (scope: string) => {
        scopes.push(scope)
        return {
          createCounter: instrument('counter'),
          createUpDownCounter: instrument('up-down'),
          createHistogram: instrument('histogram'),
        }
      },
    },
    context: { active: () => 'the active context' },
  }
  return { api, spans, instruments, descriptions, measured, scopes }
}

async function open() {
  const record = recorder()
  const { store, clock } = testStore()
  const telemetry = openTelemetry(record.api)
  const leasehold = await Leasehold.open(store, { clock, telemetry, holder: 'me' })
  return { ...record, store, clock, leasehold }
}

describe('telemetry', () => {
  it('has its own scope and its instruments, durations in seconds', async () => {
    const { scopes, instruments } = await open()
    expect(scopes).toEqual(['leasehold', 'leasehold'])
    expect(Object.fromEntries(instruments)).toEqual({
      'leasehold.acquisitions': { kind: 'counter', unit: undefined },
      'leasehold.wait.duration': { kind: 'histogram', unit: 's' },
      'leasehold.hold.duration': { kind: 'histogram', unit: 's' },
      'leasehold.renewals': { kind: 'counter', unit: undefined },
      'leasehold.losses': { kind: 'counter', unit: undefined },
      'leasehold.recipe.events': { kind: 'counter', unit: undefined },
      'leasehold.holds': { kind: 'up-down', unit: undefined },
    })
  })

  it('describes each of its instruments', async () => {
    const { descriptions } = await open()
    expect([...descriptions.keys()]).toHaveLength(7)
    for (const text of descriptions.values()) expect(text).toMatch(/^[A-Z]/)
  })

  it('does not count the loss of a claim that only waited', async () => {
    const { clock, store, leasehold, measured } = await open()
    await leasehold.lock('k')
    const failed = leasehold.lock('k').catch(({ code }) => code)
    await clock.settle()
    const { claims } = await store.read({ key: 'k' })
    await store.revoke({ target: { key: 'k', token: claims[1]!.token } })
    await clock.settle()
    expect(await failed).toBe('lost')
    expect(measured['leasehold.losses']).toEqual([])
    expect(measured['leasehold.holds']!.map(({ value }) => value)).toEqual([1])
  })

  it('follows a lock from asking to release', async () => {
    const { clock, leasehold, spans, measured } = await open()
    const first = await leasehold.lock('k')
    const waiting = leasehold.lock(['k', 'l'])
    await clock.advance(2000)
    expect(spans.at(-1)).toEqual({
      name: 'leasehold.acquire',
      context: 'the active context',
      attributes: { 'leasehold.keys': ['k', 'l'] },
      ended: 0,
    })
    await first.release()
    const lock = await waiting
    await clock.settle()
    const own = {
      'leasehold.keys': ['k', 'l'],
      'leasehold.token': lock.token,
      'leasehold.lease': lock.lease,
    }
    const [, , acquire, hold] = spans
    expect(acquire).toMatchObject({
      name: 'leasehold.acquire',
      attributes: { ...own, 'leasehold.outcome': 'held' },
      ended: 1,
    })
    expect(hold).toEqual({
      name: 'leasehold.hold',
      context: 'the active context',
      attributes: own,
      ended: 0,
    })
    expect(measured['leasehold.wait.duration']!.at(-1)).toEqual({
      value: 2,
      attributes: { outcome: 'held' },
    })
    expect(measured['leasehold.acquisitions']).toEqual([
      { value: 1, attributes: { outcome: 'held' } },
      { value: 1, attributes: { outcome: 'held' } },
    ])
    await clock.advance(3000)
    await lock.release()
    await lock.release()
    expect(hold).toMatchObject({ attributes: { 'leasehold.end': 'released' }, ended: 1 })
    expect(hold!.status).toBeUndefined()
    expect(measured['leasehold.hold.duration']).toEqual([
      { value: 2, attributes: { end: 'released' } },
      { value: 3, attributes: { end: 'released' } },
    ])
    expect(measured['leasehold.holds']!.map(({ value }) => value)).toEqual([1, -1, 1, -1])
    expect(measured['leasehold.losses']).toEqual([])
  })

  it('counts a loss once, although it was of several keys, with its reason', async () => {
    const { clock, store, leasehold, spans, measured } = await open()
    const lock = await leasehold.lock(['k', 'l'])
    await clock.advance(1000)
    await store.revoke({ target: { lease: lock.lease } })
    await clock.settle()
    expect(spans.at(-1)).toMatchObject({
      name: 'leasehold.hold',
      status: { code: 2, message: 'lost: revoked' },
      attributes: { 'leasehold.end': 'revoked' },
      ended: 1,
    })
    expect(measured['leasehold.losses']).toEqual([{ value: 1, attributes: { reason: 'revoked' } }])
    expect(measured['leasehold.hold.duration']).toEqual([
      { value: 1, attributes: { end: 'revoked' } },
    ])
    expect(measured['leasehold.holds']!.map(({ value }) => value)).toEqual([1, -1])
  })

  it('reports busy and failed attempts, without a hold', async () => {
    const { leasehold, spans, measured } = await open()
    await leasehold.lock('k')
    await leasehold.tryLock('k')
    await expect(leasehold.lock('k', { wait: 0 })).rejects.toThrow()
    const [, , busy, failed] = spans
    expect(busy).toMatchObject({ attributes: { 'leasehold.outcome': 'busy' }, ended: 1 })
    expect(busy!.status).toBeUndefined()
    expect(failed).toMatchObject({
      attributes: { 'leasehold.outcome': 'timeout' },
      status: { code: 2, message: expect.stringContaining('waited 0ms for "k"') },
      ended: 1,
    })
    expect(spans).toHaveLength(4)
    const outcomes = ['held', 'busy', 'timeout'].map((outcome) => ({
      value: 1,
      attributes: { outcome },
    }))
    expect(measured['leasehold.acquisitions']).toEqual(outcomes)
  })

  it('counts renewals and the events of recipes', async () => {
    const { clock, leasehold, measured } = await open()
    await leasehold.lock('k', { ttl: '10s' })
    await clock.advance(6000)
    expect(measured['leasehold.renewals']).toEqual([{ value: 1, attributes: undefined }])
    await leasehold
      .cache('c')
      .get('k', () => Promise.reject(new Error('no')))
      .catch(() => {})
    expect(measured['leasehold.recipe.events']).toEqual([
      { value: 1, attributes: { recipe: 'cache', event: 'failed' } },
    ])
  })

  it.each<[string, object | undefined]>([
    ['nothing', undefined],
    ['no tracer', { trace: {}, metrics: { getMeter: () => {} } }],
    ['no traces', { metrics: { getMeter: () => {} } }],
    ['no meter', { trace: { getTracer: () => {} }, metrics: {} }],
    ['no metrics', { trace: { getTracer: () => {} } }],
  ])('is refused if the api has %s', (_, api) => {
    expect(() => openTelemetry(api as never)).toThrowError(
      expect.objectContaining({ code: 'invalid-argument' }),
    )
  })
})
