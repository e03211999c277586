import { describe, expect, it } from 'vitest'
import type { LeaseStore, Notice } from '../../../src/port/index.ts'
import { CLOSE } from '../../../src/stores/remote/index.ts'
import { later, opened } from './scripted-server.ts'

const KEY = { key: 'k' }
const SPEC = { holder: 'h', ttl: 1000 }
const code = (name: string) => expect.objectContaining({ code: name })

describe('calls', () => {
  it('of one turn are sent in one frame, and are answered', async () => {
    const { store, last, clock } = await opened()
    const one = later(store.read(KEY))
    const two = later(store.claim({ lease: 'l', claims: [KEY] }))
    const three = later(store.release({ lease: 'l', keys: ['k'], token: 7 }))
    const four = later(store.renew(['l']))
    const five = later(store.update({ lease: 'l', key: 'k', token: 7, value: 'v' }))
    const six = later(store.revoke({ target: { lease: 'l' } }))
    const seven = later(store.grant(SPEC))
    expect(last().frames).toHaveLength(1)
    await clock.advance(0)
    expect(last().frames.slice(1)).toEqual([
      [
        [1, 'read', KEY],
        [2, 'claim', 'l', ['k'], 0],
        [3, 'release', 'l', 7, ['k']],
        [4, 'renew', ['l']],
        [5, 'update', { lease: 'l', key: 'k', token: 7, value: 'v' }],
        [6, 'revoke', { target: { lease: 'l' } }],
        [7, 'grant', { ...SPEC, tied: false }],
      ],
    ])
    last().say([1, 1, { count: 0, claims: [] }], [2, 1, 9, 8], [3, 1, 10], [4, 1], [5, 1, 11])
    last().say([6, 1, { leases: 1 }], [7, 0, 'limit-exceeded', 'full'], [99, 1], ['odd'])
    await clock.advance(0)
    expect(one.answer).toEqual({ count: 0, claims: [] })
    const claimed = { outcome: 'claimed', revision: 9, token: 8, holds: true, ahead: [] }
    expect(two.answer).toEqual(claimed)
    expect([three.answer, five.answer]).toEqual([{ revision: 10 }, { revision: 11 }])
    expect([four.answer, six.answer]).toEqual([{ lost: [], capped: [] }, { leases: 1 }])
    expect(seven.error).toMatchObject({ code: 'limit-exceeded', message: 'full' })
  })

  it('with unreadable answers have an unknown outcome', async () => {
    const { store, last, clock } = await opened()
    const calls = [later(store.grant(SPEC)), later(store.claim({ lease: 'l', claims: [KEY] }))]
    await clock.advance(0)
    last().say([1, 1, { outcome: 'granted', ahead: [] }], [2, 1, null])
    await clock.advance(0)
    for (const { error } of calls) expect(error).toMatchObject({ code: 'unknown-outcome' })
    expect(calls[0]!.error?.cause).toBeInstanceOf(TypeError)
  })

  it('have an unknown outcome after the timeout, whether they were sent or not', async () => {
    const { store, last, clock } = await opened({ timeout: 1000 })
    const sent = later(store.read(KEY))
    await clock.advance(500)
    const second = later(store.read(KEY))
    await clock.advance(499)
    expect(sent.error).toBeUndefined()
    await clock.advance(1)
    expect(sent.error).toMatchObject({ code: 'unknown-outcome' })
    expect(sent.error?.message).toContain('did not answer within 1s')
    expect(second.error).toBeUndefined()
    await clock.advance(500)
    expect(second.error).toMatchObject({ code: 'unknown-outcome' })
    last().events.closed(1006, 'it is away')
    const unsent = later(store.grant(SPEC))
    await clock.advance(1000)
    expect(unsent.error).toMatchObject({ code: 'unknown-outcome' })
    expect(unsent.error?.message).toContain('could not be reached')
    // A late answer has no effect.
    last().events.text('[[1,1,{}]]')
  })

  it('are sent again on the next stream if that is safe; otherwise the outcome is unknown', async () => {
    const { store, streams, last, clock } = await opened()
    const lost = [
      later(store.grant(SPEC)),
      later(store.claim({ lease: 'l', claims: [KEY] })),
      later(store.release({ lease: 'l', keys: ['k'], token: 1 })),
      later(store.update({ lease: 'l', key: 'k', token: 1, value: '' })),
      later(store.revoke({ target: KEY })),
    ]
    const request = 'r'
    const again = [
      later(store.grant({ ...SPEC, request })),
      later(store.claim({ lease: 'l', claims: [KEY], request })),
      later(store.release({ lease: 'l', keys: ['k'], token: 1, request })),
      later(store.update({ lease: 'l', key: 'k', token: 1, value: '', request })),
      later(store.revoke({ target: KEY, request })),
      later(store.renew(['l'])),
      later(store.read(KEY)),
    ]
    await clock.advance(0)
    streams[0]!.events.closed(1006, 'broken')
    const unsent = later(store.grant(SPEC))
    await clock.advance(0)
    for (const { error } of lost) expect(error).toMatchObject({ code: 'unknown-outcome' })
    expect(lost[0]!.error?.message).toContain('broken')
    for (const { error } of again) expect(error).toBeUndefined()
    await clock.advance(20)
    last().welcome()
    await clock.advance(0)
    expect(last().asked.map(([id]) => id)).toEqual([6, 7, 8, 9, 10, 11, 12, 13])
    last().say([6, 1, { outcome: 'busy', ahead: [] }], [13, 1, { outcome: 'busy', ahead: [] }])
    await clock.advance(0)
    expect([again[0]!.answer, unsent.answer]).toMatchObject([
      { outcome: 'busy' },
      { outcome: 'busy' },
    ])
  })

  it('that the server did not start are sent again at its request', async () => {
    const { store, last, clock } = await opened()
    const call = later(store.grant(SPEC))
    await clock.advance(0)
    last().say([1, 2], [1, 2], ['bye', 'the server stops'])
    await clock.advance(0)
    // After the server's goodbye nothing more is sent on this stream.
    expect(last().asked).toHaveLength(1)
    last().events.closed(CLOSE.goingAway, '')
    await clock.advance(20)
    last().welcome()
    await clock.advance(0)
    expect(last().asked).toEqual([[1, 'grant', { ...SPEC, tied: false }]])
    last().say([1, 1, { outcome: 'busy', ahead: [] }])
    await clock.advance(0)
    expect(call.answer).toMatchObject({ outcome: 'busy' })
  })

  it('wait while there is no room, or the maximum is in flight', async () => {
    const { store, last, clock } = await opened({}, { inFlight: 2, frameMessages: 3 })
    const calls = Array.from({ length: 5 }, () => later(store.read(KEY)))
    await clock.advance(0)
    expect(last().asked.map(([id]) => id)).toEqual([1, 2])
    last().hasRoom = false
    last().say([1, 1, {}])
    await clock.advance(0)
    expect(last().asked.map(([id]) => id)).toEqual([1, 2, 3])
    last().say([2, 1, {}], [3, 1, {}])
    await clock.advance(0)
    expect(last().asked).toHaveLength(3)
    last().hasRoom = true
    last().events.drained()
    await clock.advance(0)
    expect(last().asked.map(([id]) => id)).toEqual([1, 2, 3, 4, 5])
    last().say([4, 1, {}], [5, 1, {}])
    await clock.advance(0)
    expect(calls.every(({ answer }) => answer !== undefined)).toBe(true)
  })

  it("are sent 64 at a time, within the server's limits of messages and characters per frame", async () => {
    const { store, last, clock } = await opened()
    for (let at = 0; at < 64; at++) void store.read(KEY)
    expect(last().asked).toHaveLength(64)
    await clock.advance(0)
    expect(last().frames).toHaveLength(2)
    const few = await opened({}, { frameMessages: 2 })
    for (let at = 0; at < 5; at++) void few.store.read(KEY)
    await few.clock.advance(0)
    expect(
      few
        .last()
        .frames.slice(1)
        .map((frame) => frame.length),
    ).toEqual([2, 2, 1])
    const small = await opened({}, { frameBytes: 3000 })
    const value = 'v'.repeat(400)
    for (let at = 0; at < 3; at++) {
      void small.store.update({ lease: 'l', key: 'k', token: 1, value }).catch(() => {})
    }
    await small.clock.advance(0)
    expect(
      small
        .last()
        .frames.slice(1)
        .map((frame) => frame.length),
    ).toEqual([2, 1])
    const large = 'v'.repeat(3000)
    await expect(
      small.store.update({ lease: 'l', key: 'k', token: 1, value: large }),
    ).rejects.toThrowError(code('limit-exceeded'))
  })

  it('are checked before they are sent', async () => {
    const { store, last, clock } = await opened()
    const wrong: (() => Promise<unknown>)[] = [
      () => store.grant({ holder: '', ttl: 1 }),
      () => store.renew([5 as never]),
      () => store.revoke({ target: {} as never }),
      () => store.claim({ lease: 'l', claims: [] }),
      () => store.release({ lease: 'l', keys: [], token: 1 }),
      () => store.update({ lease: 'l', key: '', token: 1, value: '' }),
      () => store.read({} as never),
    ]
    for (const call of wrong) await expect(call()).rejects.toThrowError(code('invalid-argument'))
    expect(() => store.watch({} as never, () => {})).toThrowError(code('invalid-argument'))
    await clock.advance(0)
    expect(last().asked).toEqual([])
  })

  it('to renew many leases are split, and their answers joined', async () => {
    const { store, last, clock } = await opened({}, { frameBytes: 3 * (64 + 30) })
    const call = later(store.renew(['aaaaaaa', 'bbbbbbb', 'ccccccc', 'ddddddd', 'eeeeeee']))
    await clock.advance(0)
    expect(last().asked.map(([id, , leases]) => [id, (leases as string[]).length])).toEqual([
      ...[
        [1, 3],
        [2, 2],
      ],
    ])
    const lost = { lost: [{ lease: 'aaaaaaa', end: { reason: 'expired' } }], capped: [] }
    const capped = { lost: [], capped: [{ lease: 'ddddddd', remaining: null }] }
    last().say([1, 1, lost], [2, 1, capped])
    await clock.advance(0)
    expect(call.answer).toEqual({
      lost: lost.lost,
      capped: [{ lease: 'ddddddd', remaining: Infinity }],
    })
  })
})

describe('a store that is being closed', () => {
  it('waits for the calls that it sent, and fails the others', async () => {
    const { store, last, clock } = await opened({}, { inFlight: 1 })
    const [sent, unsent] = [later(store.read(KEY)), later(store.read(KEY))]
    const notices: Notice[] = []
    store.watch({ prefix: '' }, (notice) => notices.push(notice))
    await clock.advance(0)
    const closing = later(store.close())
    await clock.advance(0)
    expect(unsent.error).toMatchObject({ code: 'closed' })
    expect(notices).toMatchObject([{ type: 'interrupted', error: { code: 'closed' } }])
    expect([sent.error, last().closed]).toEqual([undefined, undefined])
    await expect(store.read(KEY)).rejects.toThrowError(code('closed'))
    last().say([1, 1, {}])
    await clock.advance(0)
    expect([sent.answer, last().closed?.[0]]).toEqual([{}, CLOSE.done])
    expect('answer' in closing).toBe(true)
    expect(store.close()).toBe(store.close())
  })

  it('while the stream is broken is closed at once; calls that it sent have an unknown outcome', async () => {
    const { store, last, clock, streams } = await opened()
    const call = later(store.read(KEY))
    await clock.advance(0)
    last().events.closed(1006, '')
    await store.close()
    expect(call.error).toMatchObject({ code: 'unknown-outcome' })
    await clock.advance(60_000)
    expect(streams).toHaveLength(1)
  })

  it('ends when the stream breaks in the meantime', async () => {
    const { store, last, clock } = await opened()
    const call = later(store.read(KEY))
    await clock.advance(0)
    const closing = store.close()
    last().events.closed(1006, '')
    await closing
    expect(call.error).toMatchObject({ code: 'unknown-outcome' })
  })
})

describe('watches', () => {
  const watch = (store: LeaseStore, target: Parameters<LeaseStore['watch']>[0]) => {
    const notices: Notice[] = []
    return { notices, opened: store.watch(target, (notice) => notices.push(notice)) }
  }

  it('of a prefix continue after the last revision, and report once that they watch', async () => {
    const { store, last, clock } = await opened()
    const { notices, opened: one } = watch(store, { prefix: 'a' })
    await clock.advance(0)
    expect(last().asked).toEqual([[1, 'watch', { prefix: 'a' }]])
    last().say(['notice', 1, { type: 'watching', revision: 5 }])
    last().say(['notice', 1, { type: 'events', revision: 7, events: [] }], ['notice', 9, {}])
    last().events.closed(1006, '')
    await clock.advance(20)
    last().welcome()
    await clock.advance(0)
    expect(last().asked).toEqual([[1, 'watch', { prefix: 'a', from: 7 }]])
    last().say(['notice', 1, { type: 'watching', revision: 7 }])
    last().say(['notice', 1, { type: 'events', revision: 8, events: [] }])
    expect(notices.map(({ type }) => type)).toEqual(['watching', 'events', 'events'])
    one.close()
    one.close()
    await clock.advance(0)
    expect(last().asked.slice(1)).toEqual([[2, 'unwatch', 1]])
    last().say(['notice', 1, { type: 'events', revision: 9, events: [] }])
    expect(notices).toHaveLength(3)
  })

  it('of a prefix are interrupted if there is no stream in time, including new ones', async () => {
    const { store, last, clock } = await opened({ timeout: 1000 })
    const first = watch(store, { prefix: 'a' })
    last().events.closed(1006, 'it is away')
    await clock.advance(500)
    const second = watch(store, { prefix: 'b' })
    await clock.advance(499)
    expect([first.notices, second.notices]).toEqual([[], []])
    await clock.advance(1)
    for (const { notices } of [first, second]) {
      expect(notices).toMatchObject([{ type: 'interrupted', error: { code: 'unknown-outcome' } }])
    }
    const third = watch(store, { prefix: 'c' })
    await clock.advance(999)
    expect(third.notices).toEqual([])
    await clock.advance(1)
    expect(third.notices).toHaveLength(1)
  })

  it('of a lease are interrupted at once, and one that throws does not stop the others', async () => {
    const { store, last, clock } = await opened()
    const warned: unknown[] = []
    const onWarning = (warning: unknown) => warned.push(warning)
    process.on('warning', onWarning)
    store.watch({ lease: 'x' }, () => {
      throw new Error('a watcher’s fault')
    })
    const lease = watch(store, { lease: 'l' })
    const prefix = watch(store, { prefix: '' })
    await clock.advance(0)
    last().events.closed(1006, '')
    expect(lease.notices).toMatchObject([{ type: 'interrupted' }])
    expect(prefix.notices).toEqual([])
    await new Promise((resolve) => setImmediate(resolve))
    process.off('warning', onWarning)
    expect(warned).toMatchObject([{ message: 'a watcher’s fault' }])
  })

  it.each(['gone', 'compacted', 'interrupted'])('end with a notice: %s', async (type) => {
    const { store, last, clock } = await opened()
    const { notices } = watch(store, { prefix: 'a' })
    await clock.advance(0)
    const error = { code: 'forbidden', message: 'no' }
    last().say(['notice', 1, { type, error }], ['notice', 1, { type: 'events', revision: 1 }])
    expect(notices).toMatchObject([{ type, error }])
  })
})

describe('tied leases', () => {
  it('are tied again on the next stream, until they are known to have ended', async () => {
    const { store, last, clock } = await opened({ tied: true })
    const granted = ['a', 'b', 'c', 'd'].map((lease) => ({ outcome: 'granted', lease, ahead: [] }))
    for (const _ of granted) void store.grant(SPEC)
    void store.grant(SPEC)
    await clock.advance(0)
    last().say(...granted.map((answer, at) => [at + 1, 1, answer]))
    last().say([5, 1, { outcome: 'busy', ahead: [] }])
    await clock.advance(0)
    void store.revoke({ target: { lease: 'a' } }).catch(() => {})
    void store.revoke({ target: { lease: 'b' }, after: 1000 }).catch(() => {})
    void store.renew(['c'])
    await clock.advance(0)
    last().say([8, 1, { lost: [{ lease: 'c', end: { reason: 'expired' } }], capped: [] }])
    await clock.advance(0)
    last().events.closed(1006, '')
    await clock.advance(20)
    last().welcome()
    await clock.advance(0)
    expect(last().asked.filter(([, what]) => what === 'tie')).toMatchObject([
      [expect.any(Number), 'tie', ['b', 'd']],
    ])
  })
})
