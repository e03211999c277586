import { Writable } from 'node:stream'
import * as api from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { pino } from 'pino'
import { afterEach, describe, expect, it } from 'vitest'
import { Leasehold, openTelemetry } from '../../../src/index.ts'
import { testStore } from '../../../src/testing/index.ts'

describe('a logger', () => {
  it('gets warnings for problems and debug for routine events, without values', async () => {
    const lines: { level: number; msg: string; [field: string]: unknown }[] = []
    const stream = new Writable({
      write(chunk, _encoding, done) {
        lines.push(JSON.parse(String(chunk)))
        done()
      },
    })
    const { store, clock } = testStore()
    const logger = pino({ level: 'debug' }, stream)
    const leasehold = await Leasehold.open(store, { clock, logger })
    const lock = await leasehold.lock('k', { value: 'my secret' })
    const other = await leasehold.lock('other')
    await other.release()
    await store.revoke({ target: { lease: lock.lease }, by: 'admin', why: 'maintenance' })
    await clock.settle()
    await leasehold.close()
    const named = lines.map(({ level, msg }) => `${pino.levels.labels[level]}: ${msg}`)
    expect(named).toEqual([
      'debug: lease granted',
      'debug: held',
      'debug: held',
      'debug: released',
      `warn: "k" (token ${lock.claimToken}) is held no more: its lease was revoked by "admin", because "maintenance"`,
    ])
    expect(JSON.stringify(lines)).not.toContain('my secret')
    expect(lines.at(-1)).toMatchObject({ reason: 'revoked', by: 'admin', why: 'maintenance' })
  })

  it('is refused if it is invalid', async () => {
    const { store } = testStore()
    const logger = { debug() {}, info() {} } as never
    await expect(Leasehold.open(store, { logger })).rejects.toThrowError(/has no function warn/)
  })
})

describe('telemetry', () => {
  // A process has one of each of these: the next one is used only if there is none.
  afterEach(() => {
    api.trace.disable()
    api.metrics.disable()
    api.context.disable()
  })

  function provide() {
    const spans = new InMemorySpanExporter()
    const traces = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] })
    const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE)
    const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 60_000 })
    const meters = new MeterProvider({ readers: [reader] })
    api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
    api.trace.setGlobalTracerProvider(traces)
    api.metrics.setGlobalMeterProvider(meters)
    const metrics = async () => {
      await reader.forceFlush()
      const found = exporter
        .getMetrics()
        .at(-1)
        ?.scopeMetrics.flatMap((scope) => scope.metrics)
      return new Map(found?.map((metric) => [metric.descriptor.name, metric.dataPoints]))
    }
    return { spans, metrics, end: () => meters.shutdown() }
  }

  it("has a span for the wait and one for the hold, under the caller's span, and metrics", async () => {
    const { spans, metrics, end } = provide()
    const { store, clock } = testStore()
    const leasehold = await Leasehold.open(store, { clock, telemetry: openTelemetry(api) })
    await api.trace.getTracer('test').startActiveSpan('job', async (job) => {
      const lock = await leasehold.lock('k', { ttl: '10s' })
      const waiting = leasehold.lock('k')
      await clock.advance(7000)
      await lock.release()
      const next = await waiting
      expect((await leasehold.tryLock('k')).lock).toBeUndefined()
      await expect(leasehold.lock('k', { wait: 0 })).rejects.toThrow()
      await store.revoke({ target: { lease: next.lease } })
      await clock.settle()
      job.end()
    })
    await leasehold.close()
    const finished = spans.getFinishedSpans()
    const job = finished.find((span) => span.name === 'job')!
    const named = (name: string) => finished.filter((span) => span.name === name)
    const valuesOf = (name: string, attribute: string) =>
      named(name).map((span) => span.attributes[attribute])
    expect(valuesOf('leasehold.acquire', 'leasehold.outcome').sort()).toEqual(
      ['busy', 'held', 'held', 'timeout'].sort(),
    )
    expect(valuesOf('leasehold.hold', 'leasehold.end')).toEqual(['released', 'revoked'])
    for (const span of [...named('leasehold.acquire'), ...named('leasehold.hold')]) {
      expect(span.parentSpanContext?.spanId).toBe(job.spanContext().spanId)
      expect(span.attributes['leasehold.keys']).toEqual(['k'])
    }
    const measured = await metrics()
    expect(measured.get('leasehold.holds')?.[0]?.value).toBe(0)
    expect(measured.get('leasehold.losses')?.[0]).toMatchObject({
      value: 1,
      attributes: { reason: 'revoked' },
    })
    const waits = measured.get('leasehold.wait.duration') as { value: { max: number } }[]
    expect(Math.max(...waits.map((point) => point.value.max))).toBeCloseTo(7, 1)
    expect(Number(measured.get('leasehold.renewals')?.[0]?.value)).toBeGreaterThan(0)
    expect(JSON.stringify([...measured.values()])).not.toContain('"k"')
    await end()
  })

  it('is refused if it is not the api', () => {
    expect(() => openTelemetry({} as never)).toThrowError(/@opentelemetry\/api/)
  })
})
