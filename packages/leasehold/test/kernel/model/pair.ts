import assert from 'node:assert/strict'
import { type Answer, isRefused, Kernel, type NoticeSink } from '../../../src/kernel/index.ts'
import {
  DEFAULT_LIMITS,
  type Event,
  type HistoryReading,
  type LeaseId,
  type Limits,
  type Revision,
  type Tenure,
} from '../../../src/port/index.ts'
import { type Call, Names } from '../../../src/testing/commands/calls.ts'
import { type Command, KEYS } from '../../../src/testing/commands/command.ts'
import { Model } from './model.ts'
import type { ModelNotice } from './model-state.ts'
import { Records } from './records.ts'

/** For half of each step the kernel is not asked to expire what is due. */
export const STALL_MS = 5

/** A kernel and a model that get the same commands and must stay equal. */
export class Pair {
  kernel: Kernel
  readonly model: Model
  readonly limits: Limits
  readonly records = new Records()
  now = 1_000_000
  /** Whether `heldSince` of the claims is compared. */
  tenuresExact = true
  readonly #names = { kernel: new Names(''), model: new Names('') }
  #notices: ModelNotice[] = []
  #eventsSeen = 0

  constructor(limits: Partial<Limits> = {}) {
    this.limits = { ...DEFAULT_LIMITS, history: 1024, historyPerKey: 1024, ...limits }
    this.kernel = this.newKernel()
    this.model = new Model(this.limits)
  }

  /** A kernel that sends its notices and records here. */
  newKernel(revision = 0): Kernel {
    return new Kernel({
      revision,
      limits: this.limits,
      changeSink: this.records,
      noticeSink: this.#listener(),
    })
  }

  /** Gives the command to both, and compares everything. */
  run(command: Command): void {
    const [kernelCall, modelCall] = [
      this.#names.kernel.call(command),
      this.#names.model.call(command),
    ]
    if (kernelCall.method === 'pass' || modelCall.method === 'pass') {
      this.pass(kernelCall.argument as number)
    } else {
      const answer = this.#askKernel(kernelCall)
      const expected = this.#askModel(modelCall)
      // Histories are bounded, so they are compared with everything else.
      if (command.do !== 'read' || command.what !== 'history')
        this.#same(answer, expected, kernelCall)
      this.#names.kernel.learn(kernelCall, answer)
      this.#names.model.learn(modelCall, expected)
    }
    this.compare()
  }

  /** Lets time pass, and expires what is due at its moment. */
  pass(ms: number): void {
    const end = this.now + ms
    while (ms !== STALL_MS) {
      const next = Math.min(...this.model.leases.map((lease) => this.model.deadline(lease)))
      if (next > end) break
      this.#notBefore(next)
      this.now = Math.max(this.now, next)
      this.#expire()
    }
    this.now = end
  }

  /** Everything that is visible of the two. */
  compare(): void {
    const { kernel, model } = this
    assert.equal(kernel.revision, model.revision)
    assert.equal(kernel.leases, model.leases.length)
    const same = this.#same
    for (const query of [{ prefix: '' }, { leases: true } as const]) {
      same(kernel.reader.read(query), model.read(query), query)
    }
    for (const [at, lease] of this.#names.kernel.leases.entries()) {
      const other = this.#names.model.leases[at]!
      same(kernel.reader.read({ lease }), model.read({ lease: other }), lease)
      this.#compareStanding(lease, other)
    }
    for (const key of KEYS) {
      same(kernel.reader.read({ key }), model.read({ key }), key)
      this.#compareHistory(key)
    }
    this.#compareEvents()
    same(this.#notices.map(text).sort(), model.notices.map(text).sort(), 'notices')
    this.#notices = []
    model.notices = []
  }

  /**
   * Continues with another kernel, which was rebuilt from this one. It gives every lease its full
   * ttl, and extends each life by the downtime. It has the events after `revision`.
   */
  replace(kernel: Kernel, downtime: number, revision: number): void {
    sameOrder(eventsAfter(this.kernel, revision), eventsAfter(kernel, revision))
    this.kernel = kernel
    this.now += downtime
    for (const lease of this.model.leases) {
      lease.renewedAt = this.now
      lease.endOfLife += downtime
    }
    this.#eventsSeen = this.model.events.filter((event) => event.revision <= revision).length
    this.compare()
  }

  readonly #same = (answer: object, expected: object, about: unknown): void => {
    if (this.tenuresExact) same(answer, expected, about)
    else same(timeless(answer) as object, timeless(expected) as object, about)
  }

  #askKernel(call: Exclude<Call, { method: 'pass' }>): object {
    const { kernel } = this
    const answer =
      call.method === 'read'
        ? kernel.reader.read(call.argument)
        : (kernel[call.method] as (argument: unknown, now: number) => object)(
            call.argument,
            this.now,
          )
    if (!isRefused(answer as Answer)) return answer
    const { code, end, message } = (
      answer as { refusal: { code: string; message: string } & { end?: object } }
    ).refusal
    assert.ok(message.length > 0)
    return { code, end }
  }

  #askModel(call: Exclude<Call, { method: 'pass' }>): object {
    if (call.method === 'read') return this.model.read(call.argument)
    return (this.model[call.method] as (argument: unknown, now: number) => object)(
      call.argument,
      this.now,
    )
  }

  /** Nothing may expire before it is due, and the kernel must ask to be called by then. */
  #notBefore(deadline: number): void {
    const { revision, nextDeadline } = this.kernel
    assert.ok(nextDeadline <= deadline, 'the kernel would be asked too late')
    if (deadline > this.now) this.kernel.expire(deadline - 0.001, 1000)
    assert.equal(this.kernel.revision, revision, 'a lease expired before its time')
  }

  /** What is due at one moment may end in any order, but the earliest first. */
  #expire(): void {
    while (this.kernel.nextDeadline <= this.now) {
      const from = this.records.changes.length
      this.kernel.expire(this.now, 1)
      const ended = this.records.changes.slice(from).filter(({ kind }) => kind === 'ended')
      if (ended.length === 0) continue
      const ids = new Set(ended.map(({ slot }) => `L${this.records.born.get(slot!)}`))
      const family = this.model.leases.filter(({ id }) => ids.has(id))
      const roots = family.filter(({ spec }) => !ids.has(spec.parent ?? ''))
      assert.equal(roots.length, 1, 'one lease at a time expires, with its family')
      const due = this.model.due(this.now).map((lease) => this.model.deadline(lease))
      assert.equal(this.model.deadline(roots[0]!), Math.min(...due))
      this.model.expire(roots[0]!, this.now)
    }
    assert.deepEqual(this.model.due(this.now), [], 'a lease that is due was left')
  }

  #compareStanding(lease: LeaseId, other: LeaseId): void {
    const standing = this.kernel.ownClaims(lease)
    const own = this.model.claims.filter((claim) => claim.lease.id === other)
    const held = (token: number) =>
      own.every((claim) => claim.token !== token || claim.heldSince !== undefined)
    const expected = own.map(({ key, token }) => ({ key, token, holds: held(token) }))
    same((standing?.claims ?? []).map(text).sort(), expected.map(text).sort(), 'standing')
  }

  #compareHistory(key: string): void {
    const { tenures } = this.kernel.reader.read({ history: key }) as HistoryReading
    const { history, historyPerKey, idleKeys } = this.limits
    const all = this.model.history(key)
    const seen = (tenure: Tenure) => text(this.tenuresExact ? tenure : (timeless(tenure) as object))
    const known = new Set(all.map(seen))
    for (const tenure of tenures) {
      assert.ok(known.has(seen(tenure)), `${JSON.stringify(tenure)} never was`)
    }
    assert.equal(new Set(tenures.map(({ token }) => token)).size, tenures.length)
    assert.ok(tenures.length <= historyPerKey)
    for (let at = 1; at < tenures.length; at++) {
      assert.ok(tenures[at - 1]!.endedAt >= tenures[at]!.endedAt, 'the latest comes first')
    }
    if (idleKeys < KEYS.length || this.model.tenures.length > history) return
    assert.equal(tenures.length, Math.min(all.length, historyPerKey), `history of ${key}`)
  }

  /** All events since the last comparison, by revision; in any order within one revision. */
  #compareEvents(): void {
    const { events } = this.kernel
    const expected = this.model.events.slice(this.#eventsSeen)
    const seen = []
    for (let at = events.next - expected.length; at < events.next; at++) seen.push(events.event(at))
    const order = (event: object) => text(event)
    const byRevision = (list: readonly { revision: number }[]) =>
      list.map((event) => [event.revision, order(event)] as const).sort(compareRevision)
    same(byRevision(seen), byRevision(expected), 'events')
    for (let at = 1; at < seen.length; at++) {
      assert.ok(seen[at - 1]!.revision <= seen[at]!.revision, 'events out of order')
    }
    this.#eventsSeen = this.model.events.length
  }

  #listener(): NoticeSink {
    const lease = (slot: number) => `L${this.records.born.get(slot)}`
    const push = (notice: ModelNotice) => void this.#notices.push(notice)
    return {
      holds: (slot, revision, token) => {
        assert.equal(revision, this.kernel.revision)
        push({ lease: lease(slot), type: 'holds', token })
      },
      removed: (slot, _revision, key, token) =>
        push({ lease: lease(slot), type: 'removed', key, token }),
      capped: (slot) => push({ lease: lease(slot), type: 'capped' }),
      gone: (slot) => push({ lease: lease(slot), type: 'gone' }),
    }
  }
}

function eventsAfter({ events }: Kernel, revision: Revision): Event[] {
  const from = events.after(Math.max(revision, events.completeAfter))
  return Array.from({ length: events.next - from }, (_, at) => events.event(from + at))
}

/** A rebuilt kernel reports its events in the order of the old one: a watch may continue on it. */
function sameOrder(old: readonly Event[], rebuilt: readonly Event[]): void {
  const common = Math.min(old.length, rebuilt.length)
  if (common > 0) same(rebuilt.slice(-common), old.slice(-common), 'the order of events')
}

/** Without `heldSince`. The number of holders shows which claims hold. */
function timeless(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(timeless)
  if (typeof value !== 'object' || value === null) return value
  const { heldSince: _, ...rest } = value as { heldSince?: unknown }
  return Object.fromEntries(Object.entries(rest).map(([name, field]) => [name, timeless(field)]))
}

function compareRevision(one: readonly [number, string], other: readonly [number, string]) {
  return one[0] - other[0] || (one[1] < other[1] ? -1 : 1)
}

function text(value: object): string {
  return JSON.stringify(plain(value))
}

/** With the ids of the model, fields in order, and without undefined fields. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value === 'string') return value.replace(/^\d+\.(\d+)$/, 'L$1')
  if (value === Infinity) return 'Infinity'
  if (typeof value !== 'object' || value === null) return value
  const fields: Record<string, unknown> = {}
  for (const name of Object.keys(value).sort()) {
    const field = (value as Record<string, unknown>)[name]
    if (field !== undefined) fields[name] = plain(field)
  }
  if ('lease' in fields && Array.isArray(fields['claims']))
    fields['claims'] = sorted(fields['claims'])
  if (Array.isArray(fields['leases'])) fields['leases'] = sorted(fields['leases'])
  return fields
}

function sorted(list: unknown[]): string[] {
  return list.map((each) => JSON.stringify(each)).sort()
}

/** Compares strings first, which is fast. Shows the difference only if there is one. */
function same(answer: object, expected: object, about: unknown): void {
  const [one, other] = [plain(answer), plain(expected)]
  if (JSON.stringify(one) === JSON.stringify(other)) return
  assert.deepEqual(one, other, `the kernel differs from the model: ${JSON.stringify(about)}`)
}
