import { describe, expect, it } from 'vitest'
import { EventLog } from '../../../src/kernel/history/event-log.ts'
import { Tables } from '../../../src/kernel/tables/tables.ts'
import { DEFAULT_LIMITS, type End } from '../../../src/port/index.ts'

/** Tables with one claim of one lease on one key. */
function begin(keep: number) {
  const tables = new Tables(DEFAULT_LIMITS)
  const { leases, claims, keys } = tables
  const lease = leases.slots.take()
  leases.put(lease, 7, 'alice', 1)
  const claim = claims.slots.take()
  claims.lease.set(claim, lease)
  claims.key.set(claim, keys.ensure('jobs/a'))
  claims.token.set(claim, 9)
  claims.setMode(claim, 'exclusive', 0)
  claims.value.set(claim, 'v')
  return { tables, claim, log: new EventLog(tables, keep, 0) }
}

/** Adds events, one for each revision after the last. */
function add({ log, claim }: ReturnType<typeof begin>, count: number, from = log.next + 1): void {
  for (let at = 0; at < count; at++) log.add('updated', from + at, claim, 1000 + at, undefined)
}

describe('the event log', () => {
  it('returns what was added', () => {
    const { log, claim, tables } = begin(64)
    const end: End = { reason: 'revoked', by: 'bob' }
    log.add('claimed', 9, claim, 100, undefined)
    tables.claims.setMode(claim, 'shared', 3)
    tables.claims.value.set(claim, undefined)
    log.add('updated', 10, claim, 101, undefined)
    tables.claims.setMode(claim, 'shared', 0)
    log.add('held', 11, claim, 102, undefined)
    log.add('removed', 11, claim, 102, end)
    const same = { key: 'jobs/a', token: 9, lease: '0.7', holder: 'alice' }
    const shared = { ...same, mode: 'shared', value: undefined }
    expect([0, 1, 2, 3].map((number) => log.event(number))).toEqual([
      {
        ...same,
        revision: 9,
        type: 'claimed',
        mode: 'exclusive',
        limit: undefined,
        value: 'v',
        end: undefined,
        at: 100,
      },
      { ...shared, revision: 10, type: 'updated', limit: 3, end: undefined, at: 101 },
      { ...shared, revision: 11, type: 'held', limit: undefined, end: undefined, at: 102 },
      { ...shared, revision: 11, type: 'removed', limit: undefined, end, at: 102 },
    ])
    expect([log.key(3), log.next, log.completeAfter]).toEqual(['jobs/a', 4, 0])
  })

  it.each([
    [1, 64],
    [70, 70],
    [100, 100],
    [5000, 1024],
  ])('that keeps %i events drops them in pages of %i', (keep, page) => {
    const made = begin(keep)
    const { log } = made
    // A page is dropped when a new one is needed and enough events are left.
    const enough = page + Math.ceil(keep / page) * page
    add(made, enough)
    expect(log.completeAfter).toBe(0)
    add(made, 1)
    expect(log.completeAfter).toBe(page)
    expect(log.after(page)).toBe(page)
    expect(log.event(page).revision).toBe(page + 1)
    add(made, 3 * page)
    expect(log.completeAfter).toBe(4 * page)
    expect(log.next - log.after(log.completeAfter)).toBeGreaterThanOrEqual(keep)
    for (let number = 4 * page; number < log.next; number++) {
      expect(log.event(number).revision).toBe(number + 1)
    }
  })

  it('keeps all events that are not announced yet', () => {
    const made = begin(64)
    const { log } = made
    log.announced(10)
    add(made, 500)
    expect(log.completeAfter).toBe(0)
    log.announced(63)
    add(made, 64)
    expect(log.completeAfter).toBe(0)
    log.announced(64)
    add(made, 64)
    expect(log.completeAfter).toBe(64)
  })

  it('finds the first event after a revision', () => {
    const made = begin(64)
    for (const revision of [3, 3, 5, 9]) add(made, 1, revision)
    expect([0, 2, 3, 4, 5, 8, 9, 10].map((revision) => made.log.after(revision))).toEqual([
      0, 0, 2, 2, 3, 3, 4, 4,
    ])
  })

  it('starts again after a revision', () => {
    const made = begin(1)
    const { log } = made
    log.announced(0)
    add(made, 300)
    log.skip(300, 310)
    log.restart(400)
    expect([log.next, log.completeAfter, log.after(400)]).toEqual([0, 400, 0])
    expect([log.continuesFrom(399), log.continuesFrom(400)]).toEqual([false, true])
    add(made, 200, 401)
    expect(log.completeAfter).toBeGreaterThan(400)
    expect(log.event(log.next - 1).revision).toBe(600)
    log.restart(0)
    expect(log.continuesFrom(305)).toBe(true)
  })

  it('does not continue from a skipped revision', () => {
    const made = begin(1)
    const { log } = made
    log.skip(10, 20)
    log.skip(30, 40)
    const from = [9, 10, 11, 19, 20, 25, 30, 31, 39, 40]
    expect(from.map((revision) => log.continuesFrom(revision))).toEqual([
      ...[true, true, false, false, true, true],
      ...[true, false, false, true],
    ])
  })
})
