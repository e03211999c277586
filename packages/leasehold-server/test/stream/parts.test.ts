import { memoryStore } from 'leasehold/memory'
import { LeaseholdError, type Notice } from 'leasehold/port'
import type { RequestMessage } from 'leasehold/remote'
import { TestClock } from 'leasehold/testing'
import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { asLeaseholdError, carryOut, encodeAnswer, refusal } from '../../src/stream/operations.ts'
import { DEFAULT_STREAM } from '../../src/stream/options.ts'
import { Outbox } from '../../src/stream/outbox.ts'
import { StreamWatches } from '../../src/stream/stream-watches.ts'
import { TiedLeases } from '../../src/stream/tied-leases.ts'
import { undo } from '../../src/stream/undo.ts'
import { lease } from '../access/scene.ts'
import { changedStore } from '../setup/changed-store.ts'

/** A log, and its entries. */
function written() {
  const lines: unknown[] = []
  const write = (line: string) => void lines.push(JSON.parse(line))
  return { log: pino({ level: 'warn' }, { write }), lines }
}

/** What a client reads from a connection. */
function wire(options = {}) {
  const clock = new TestClock()
  const sent: string[] = []
  const socket = {
    bufferedAmount: 0,
    send: (text: string, left: () => void) => {
      sent.push(text)
      left()
    },
  }
  const stats = { notices: 0, dropped: 0 }
  const around = { clock, stats, options: { ...DEFAULT_STREAM, ...options } }
  const events: unknown[] = []
  const out = new Outbox(socket as never, undefined, around as never, {
    tooSlow: (bytes) => events.push(bytes),
    sent: () => events.push('left'),
    failed: (error) => events.push(error),
  })
  return { clock, sent, socket, stats, around, events, out }
}

describe('the outbox', () => {
  it('leaves together at the end of the turn', async () => {
    const { out, sent, clock, events } = wire()
    out.push('[1]')
    out.push('[2]')
    expect(sent).toEqual([])
    await clock.advance(0)
    expect([sent, events]).toEqual([['[[1],[2]]'], ['left']])
    out.flush()
    expect(sent).toHaveLength(1)
    out.push('[3]')
    await clock.advance(0)
    expect(sent[1]).toBe('[[3]]')
    out.push('[4]')
    out.flush()
    await clock.advance(0)
    expect(sent.slice(2)).toEqual(['[[4]]'])
  })

  it('is sent at once when it fills a frame of half a million characters', () => {
    const { out, sent } = wire()
    const half = 'x'.repeat(256 * 1024)
    out.push(half.slice(1))
    out.push(half)
    expect(sent).toEqual([])
    out.push('[]')
    expect(sent).toHaveLength(1)
    out.push(half + half)
    expect(sent).toHaveLength(2)
    out.push('[]')
    expect(sent).toHaveLength(2)
  })

  it('is full above the high-water mark, counting collected and unread data', async () => {
    const { out, socket, clock } = wire({ highWater: 10 })
    out.push('12345')
    socket.bufferedAmount = 5
    expect(out.isFull).toBe(false)
    out.push('6')
    expect(out.isFull).toBe(true)
    await clock.advance(0)
    expect(out.isFull).toBe(false)
  })

  it('reports a client that does not read more than may wait', async () => {
    const { out, socket, clock, events, stats } = wire({ buffered: 100 })
    socket.bufferedAmount = 100
    out.push('1')
    await clock.advance(0)
    expect([events, stats.dropped]).toEqual([['left'], 0])
    socket.bufferedAmount = 101
    out.push('1')
    await clock.advance(0)
    expect([events, stats.dropped]).toEqual([['left', 'left', 101], 1])
  })

  it('reports a failure, whatever caused the send', async () => {
    const { out, socket, clock, events } = wire()
    const fault = new Error('broken')
    socket.send = () => {
      throw fault
    }
    socket.bufferedAmount = 1e12
    out.push('1')
    await clock.advance(0)
    expect(events).toEqual([fault])
  })

  it('is nothing after it was stopped', async () => {
    const { out, sent, clock } = wire()
    out.push('1')
    out.stop()
    out.push('2')
    out.flush()
    out.push('x'.repeat(512 * 1024))
    await clock.advance(0)
    expect(sent).toEqual([])
  })
})

describe('the watches of a stream', () => {
  const heard = (sent: readonly string[]) => sent.flatMap((text) => JSON.parse(text))

  it('are limited, and opened again by the same id', async () => {
    const { out, around, sent, clock, stats } = wire({ watches: 2 })
    const opened: string[] = []
    let tell: (notice: Notice) => void = () => {}
    const inner = memoryStore({ clock })
    const store = changedStore(inner, {
      watch: (target, observer) => {
        const name = 'prefix' in target ? target.prefix : target.lease
        if (name === 'odd') throw new Error('odd')
        opened.push(`+${name}`)
        tell = observer
        return { close: () => void opened.push(`-${name}`) }
      },
    })
    const watches = new StreamWatches(around as never, store, out)
    watches.open(1, { prefix: 'a' })
    watches.open(2, { prefix: 'b' })
    watches.open(3, { prefix: 'c' })
    watches.open(2, { prefix: 'd' })
    await clock.advance(0)
    expect(opened).toEqual(['+a', '+b', '-b', '+d'])
    expect(heard(sent)).toMatchObject([
      ['notice', 3, { type: 'interrupted', error: { code: 'limit-exceeded' } }],
    ])
    tell({ type: 'watching', revision: 1 })
    tell({ type: 'interrupted', error: new LeaseholdError('closed', 'x') })
    expect(stats.notices).toBe(2)
    // The second has ended already, so there is room, and nothing to close.
    watches.open(4, { prefix: 'e' })
    watches.open(2, { prefix: 'full' })
    watches.close(9)
    watches.close(4)
    watches.open(5, { prefix: 'odd' })
    watches.closeAll()
    watches.closeAll()
    expect(opened.slice(4)).toEqual(['+e', '-e', '-a'])
    await clock.advance(0)
    expect(heard(sent).slice(1)).toMatchObject([
      ['notice', 2, { type: 'watching' }],
      ['notice', 2, { type: 'interrupted' }],
      ['notice', 2, { type: 'interrupted', error: { code: 'limit-exceeded' } }],
      ['notice', 5, { type: 'interrupted', error: { code: 'unknown-outcome' } }],
    ])
  })

  const end = { reason: 'expired' } as const
  const error = new LeaseholdError('closed', 'x')
  const NOTICES: readonly (readonly [isLast: boolean, notice: Notice])[] = [
    [true, { type: 'gone', end }],
    [true, { type: 'compacted', oldest: 5 }],
    [true, { type: 'interrupted', error }],
    [false, { type: 'watching', revision: 1 }],
    [false, { type: 'holds', revision: 1, token: 1 }],
    [false, { type: 'removed', revision: 1, key: 'k', token: 1, end }],
  ]
  it.each(NOTICES)('make room when one ends by itself (%s): %o', async (isLast, notice) => {
    const { out, around, sent, clock } = wire({ watches: 1 })
    let tell: (notice: Notice) => void = () => {}
    const store = changedStore(memoryStore({ clock }), {
      watch: (_target, observer) => {
        tell = observer
        return { close: () => {} }
      },
    })
    const watches = new StreamWatches(around as never, store, out)
    watches.open(1, { prefix: 'a' })
    tell(notice)
    watches.open(2, { prefix: 'b' })
    await clock.advance(0)
    const refused = ['notice', 2, { type: 'interrupted', error: { code: 'limit-exceeded' } }]
    expect(heard(sent).slice(1)).toMatchObject(isLast ? [] : [refused])
  })
})

describe('an operation', () => {
  it('is called on the store, and its effects are reported before the answer', async () => {
    const store = memoryStore({ clock: new TestClock() })
    const done: string[] = []
    const call = (...message: unknown[]) =>
      carryOut(store, message as never)?.then((given) =>
        encodeAnswer(message as never, given, (_, answer) => void done.push(answer.outcome)),
      )
    const claims = [{ key: 'k' }]
    const granted = JSON.parse((await call(1, 'grant', { holder: 'h', ttl: 1000, claims }))!)
    const { lease: id, token } = granted[2]
    const ifFree = { holder: 'h', ttl: 1000, claims, ifFree: true }
    expect(JSON.parse((await call(2, 'grant', ifFree))!)).toMatchObject([2, 1, { outcome: 'busy' }])
    expect(done).toEqual(['granted'])
    const claimed = JSON.parse((await call(9, 'claim', id, ['l'], 1))!)
    expect([claimed[0], done]).toEqual([9, ['granted', 'claimed']])
    await call(10, 'claim', id, ['l'], 1)
    expect(done).toHaveLength(2)
    const update = { lease: id, key: 'k', token, value: 'v' }
    expect(JSON.parse((await call(3, 'update', update))!)[0]).toBe(3)
    expect(JSON.parse((await call(4, 'read', { key: 'k' }))!)[2].claims[0].value).toBe('v')
    expect(JSON.parse((await call(5, 'renew', [id]))!)[0]).toBe(5)
    expect(JSON.parse((await call(6, 'revoke', { target: { lease: id } }))!)).toMatchObject([
      ...[6, 1, { leases: 1 }],
    ])
    expect(call(7, 'watch', { prefix: '' })).toBeUndefined()
    expect(call(8, 'toString')).toBeUndefined()
  })

  it('that fails is answered with its code, or with an unknown outcome', () => {
    const own = new LeaseholdError('closed', 'x')
    expect(asLeaseholdError(own)).toBe(own)
    const odd = new Error('odd')
    expect(asLeaseholdError(odd)).toMatchObject({ code: 'unknown-outcome', cause: odd })
    expect(asLeaseholdError(odd).message).toContain('failed: odd')
    expect(asLeaseholdError('text').message).toContain('failed: text')
    expect(JSON.parse(refusal(7, own))).toMatchObject([7, 0, 'closed', 'x'])
  })
})

describe('ties', () => {
  function scene() {
    const clock = new TestClock()
    const store = memoryStore({ clock })
    const { log, lines } = written()
    const ties = new TiedLeases(store, clock, log)
    const alive = async (id: string) => (await store.read({ lease: id })).lease !== undefined
    return { clock, store, ties, alive, lines }
  }

  it('end tied leases when the client has not returned within its linger', async () => {
    const { clock, store, ties, alive } = scene()
    const [one, other] = [await lease(store, ['a']), await lease(store, ['b'])]
    const bond = ties.join('c', 100)
    ties.tie(bond, one.lease)
    ties.tie(bond, one.lease)
    ties.leave(bond, false, false)
    await clock.advance(99)
    expect(await alive(one.lease)).toBe(true)
    expect(ties.join('c', 200)).toBe(bond)
    await clock.advance(50)
    expect(await alive(one.lease)).toBe(true)
    ties.leave(bond, false, false)
    await clock.advance(199)
    expect(await alive(one.lease)).toBe(true)
    await clock.advance(1)
    expect([await alive(one.lease), await alive(other.lease)]).toEqual([false, true])
    const { tenures } = await store.read({ history: 'a' })
    expect(tenures[0]?.end).toMatchObject({ by: 'leasehold-server' })
    // It was granted while its client went away.
    ties.tie(bond, other.lease)
    await clock.advance(0)
    expect(await alive(other.lease)).toBe(false)
    expect(ties.join('c', 1)).not.toBe(bond)
  })

  it.each([
    ['it said goodbye', 100, true],
    ['it does not linger', 0, false],
  ])('end tied leases at once if %s', async (_why, linger, saidGoodbye) => {
    const { clock, store, ties, alive } = scene()
    const { lease: id } = await lease(store)
    const bond = ties.join('c', linger)
    ties.tie(bond, id)
    ties.leave(bond, saidGoodbye, false)
    expect(bond.ended).toBe(true)
    await clock.advance(0)
    expect(await alive(id)).toBe(false)
  })

  it('that cannot be ended by force are left to their ttl, and the log says so', async () => {
    const { clock, store, ties, lines } = scene()
    const { lease: id } = await lease(store)
    const bond = ties.join('c', 0)
    ties.tie(bond, id)
    ties.leave(bond, false, false)
    // It ends twice: the second time has no effect.
    ties.tie(bond, id)
    await clock.advance(0)
    expect(lines).toMatchObject([{ lease: id, err: { code: 'lease-ended' } }])
  })

  it('are kept for pending calls, and not otherwise', async () => {
    const { clock, store, ties, alive } = scene()
    const { lease: id } = await lease(store)
    const empty = ties.join('a', 100)
    ties.leave(empty, false, false)
    expect([empty.ended, ties.join('a', 100) === empty]).toEqual([true, false])
    const busy = ties.join('b', 100)
    ties.leave(busy, false, true)
    expect(busy.ended).toBe(false)
    ties.tie(busy, id)
    await clock.advance(100)
    expect([busy.ended, await alive(id)]).toEqual([true, false])
    const gone = ties.join('g', 100)
    const { lease: brief } = await lease(store)
    ties.tie(gone, brief)
    await store.revoke({ target: { lease: brief } })
    await clock.advance(0)
    expect(gone.leases.size).toBe(0)
    ties.leave(gone, false, false)
    expect(gone.ended).toBe(true)
  })

  it('that are forgotten, or of a server that stops, end nothing', async () => {
    const { clock, store, ties, alive } = scene()
    const ids = [(await lease(store)).lease, (await lease(store)).lease, (await lease(store)).lease]
    const bond = ties.join('c', 100)
    ties.tie(bond, ids[0]!)
    ties.leave(bond, false, false)
    ties.forget('nobody')
    ties.forget('c')
    ties.tie(bond, ids[1]!)
    expect(bond.leases.size).toBe(0)
    const second = ties.join('c', 100)
    expect(second).not.toBe(bond)
    const third = ties.join('d', 0)
    ties.tie(second, ids[1]!)
    ties.tie(third, ids[2]!)
    ties.leave(second, false, false)
    ties.stop()
    ties.leave(third, true, false)
    ties.tie(third, ids[0]!)
    expect(third.leases.has(ids[0]!)).toBe(false)
    await clock.advance(1000)
    expect(await Promise.all(ids.map(alive))).toEqual([true, true, true])
  })
})

describe('a result that nobody knows', () => {
  it('is undone, unless its client may repeat the request', async () => {
    const clock = new TestClock()
    const store = memoryStore({ clock })
    const { log, lines } = written()
    const admission = { ownLease: (id: string) => (id.endsWith('~') ? id.slice(0, -1) : undefined) }
    const counts = () =>
      Promise.all(['a', 'b'].map(async (key) => (await store.read({ key })).count))
    const take = async (message: unknown[], given: object) => {
      const isTaken = undo(
        { store, log },
        admission as never,
        message as never as RequestMessage,
        given as never,
      )
      await clock.advance(0)
      return isTaken
    }
    const answer = await lease(store, ['a', 'b'])
    const { lease: id, token } = answer
    const claimed = { outcome: 'claimed', token }
    expect(await take([1, 'grant', { request: 'r' }], answer)).toBe(false)
    expect(await take([1, 'claim', id, ['b'], 0, 'r'], claimed)).toBe(false)
    expect(await counts()).toEqual([1, 1])
    expect(await take([1, 'claim', `${id}~`, ['b'], 0], claimed)).toBe(true)
    expect(await counts()).toEqual([1, 0])
    expect(await take([1, 'grant', {}], { ...answer, lease: `${id}~` })).toBe(true)
    expect(await counts()).toEqual([0, 0])
    const { tenures } = await store.read({ history: 'a' })
    expect(tenures[0]?.end).toMatchObject({ by: 'leasehold-server' })
    // Taking it back fails, because it has ended: that is logged, and goes no further.
    expect(lines).toEqual([])
    expect(await take([1, 'grant', {}], answer)).toBe(true)
    expect(lines).toMatchObject([{ lease: id, err: { code: 'lease-ended' } }])
  })
})
