import { invalid, show } from '../../port/index.ts'
import type { Telemetry } from './telemetry.ts'

type Attributes = Record<string, string | number | readonly string[]>

/** The parts of the package `@opentelemetry/api` that are used. The caller passes it in. */
export interface OpenTelemetryApi {
  readonly trace: { getTracer(name: string): OpenTelemetryTracer }
  readonly metrics: { getMeter(name: string): OpenTelemetryMeter }
  readonly context: { active(): unknown }
}

export interface OpenTelemetryTracer {
  // The context is the api's own: what `context.active()` gave.
  // biome-ignore lint/suspicious/noExplicitAny: its type is known to that package alone
  startSpan(name: string, options?: { attributes?: any }, context?: any): OpenTelemetrySpan
}

export interface OpenTelemetrySpan {
  // biome-ignore lint/suspicious/noExplicitAny: as above
  setAttributes(attributes: any): unknown
  setStatus(status: { code: number; message?: string }): unknown
  end(): void
}

export interface OpenTelemetryMeter {
  createCounter(name: string, options?: { description?: string; unit?: string }): Counter
  createUpDownCounter(name: string, options?: { description?: string; unit?: string }): Counter
  createHistogram(name: string, options?: { description?: string; unit?: string }): Histogram
}

interface Counter {
  add(value: number, attributes?: Record<string, string>): void
}

interface Histogram {
  record(value: number, attributes?: Record<string, string>): void
}

const NAME = 'leasehold'
/** The api's SpanStatusCode.ERROR. */
const FAILED = 2

/**
 * Spans and metrics for OpenTelemetry, with its api package only, which the caller passes in:
 * `Leasehold.open(url, { telemetry: openTelemetry(api) })`.
 *
 * Two spans: `leasehold.acquire` from the call until it is held, and `leasehold.hold` from then until
 * it is released or lost. Both are children of the span that was active at the call. Keys are
 * attributes of spans and never of metrics, where each would be a time series of its own.
 */
export function openTelemetry(api: OpenTelemetryApi): Telemetry {
  if (typeof api?.trace?.getTracer !== 'function' || typeof api.metrics?.getMeter !== 'function') {
    throw invalid(
      `api is ${show(api)}: give the whole module, import * as api from '@opentelemetry/api'`,
    )
  }
  return new OpenTelemetry(api)
}

/** A hold whose end will be recorded. */
interface Held {
  readonly span: OpenTelemetrySpan
  readonly since: number
}

class OpenTelemetry implements Telemetry {
  readonly #api: OpenTelemetryApi
  readonly #tracer: OpenTelemetryTracer
  readonly #acquisitions: Counter
  readonly #waits: Histogram
  readonly #holds: Counter
  readonly #held: Histogram
  readonly #renewals: Counter
  readonly #losses: Counter
  readonly #recipes: Counter
  readonly #open = new Map<string, Held>()
  #now!: () => number

  constructor(api: OpenTelemetryApi) {
    this.#api = api
    this.#tracer = api.trace.getTracer(NAME)
    const meter = api.metrics.getMeter(NAME)
    const counter = (name: string, description: string) =>
      meter.createCounter(`leasehold.${name}`, { description })
    const seconds = (name: string, description: string) =>
      meter.createHistogram(`leasehold.${name}`, { description, unit: 's' })
    this.#acquisitions = counter('acquisitions', 'What was asked for, by how it ended')
    this.#waits = seconds('wait.duration', 'From asking to holding, or to the end of asking')
    this.#held = seconds('hold.duration', 'From holding to release or loss')
    this.#renewals = counter('renewals', 'Leases that the store gave their full ttl again')
    this.#losses = counter('losses', 'What was held and was lost, by reason')
    this.#recipes = counter('recipe.events', 'What happened in recipes')
    this.#holds = meter.createUpDownCounter('leasehold.holds', { description: 'Held now' })
  }

  begin(events: Parameters<Telemetry['begin']>[0], now: () => number): void {
    this.#now = now
    events.on('renewed', () => this.#renewals.add(1))
    events.on('released', ({ lease, token }) => this.#ended(lease, [token], 'released'))
    events.on('closed', ({ lease, claims }) => {
      const tokens = claims.map((claim) => claim.token)
      this.#ended(lease, tokens, 'closed')
    })
    events.on('lost', ({ lease, claims, error }) => {
      const tokens = claims.map((claim) => claim.token)
      this.#ended(lease, tokens, 'lost', error.reason)
    })
    events.on('recipe-event', ({ recipe, event }) => this.#recipes.add(1, { recipe, event }))
  }

  acquiring(keys: readonly string[]): ReturnType<Telemetry['acquiring']> {
    const since = this.#now()
    const context = this.#api.context.active()
    const attributes: Attributes = { 'leasehold.keys': keys }
    const span = this.#tracer.startSpan('leasehold.acquire', { attributes }, context)
    return (acquisition) => {
      const outcome = acquisition.outcome === 'failed' ? acquisition.code : acquisition.outcome
      this.#acquisitions.add(1, { outcome })
      this.#waits.record((this.#now() - since) / 1000, { outcome })
      span.setAttributes({ 'leasehold.outcome': outcome })
      if (acquisition.outcome === 'failed') {
        span.setStatus({ code: FAILED, message: String(acquisition.error) })
      } else if (acquisition.outcome === 'held') {
        const { lease, token } = acquisition
        const own = { ...attributes, 'leasehold.token': token, 'leasehold.lease': lease }
        span.setAttributes(own)
        const hold = this.#tracer.startSpan('leasehold.hold', { attributes: own }, context)
        this.#open.set(`${lease}/${token}`, { span: hold, since: this.#now() })
        this.#holds.add(1)
      }
      span.end()
    }
  }

  #ended(
    lease: string,
    tokens: readonly number[],
    how: 'released' | 'closed' | 'lost',
    reason = 'unknown',
  ): void {
    for (const token of new Set(tokens)) {
      const name = `${lease}/${token}`
      const held = this.#open.get(name)
      if (held === undefined) continue
      this.#open.delete(name)
      const end = how === 'lost' ? reason : how
      this.#holds.add(-1)
      this.#held.record((this.#now() - held.since) / 1000, { end })
      if (how === 'lost') {
        this.#losses.add(1, { reason })
        held.span.setStatus({ code: FAILED, message: `lost: ${reason}` })
      }
      held.span.setAttributes({ 'leasehold.end': end })
      held.span.end()
    }
  }
}
