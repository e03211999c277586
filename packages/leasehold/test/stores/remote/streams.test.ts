import { describe, expect, it } from 'vitest'
import type { Notice } from '../../../src/port/index.ts'
import { CLOSE, PROTOCOL } from '../../../src/stores/remote/index.ts'
import { later, opened, scripted } from './scripted-server.ts'

const KEY = { key: 'k' }
const SPEC = { holder: 'h', ttl: 1000 }
const code = (name: string) => expect.objectContaining({ code: name })

describe('the first stream', () => {
  it('gets its options, and accepts messages of up to 128 MiB', async () => {
    const tls = { ca: 'an authority' }
    const { last } = scripted({ tls, timeout: '2s', silence: '3s' })
    expect(last().options).toMatchObject({
      ...{ tls, timeout: 2000, silence: 3000, messageBytes: 2 ** 27, keepAlive: true },
    })
  })

  it('is refused with another version of the protocol', async () => {
    const { last } = scripted()
    const stream = { frameBytes: 1, frameMessages: 1, inFlight: 1 }
    const whole = { guarantees: { ttl: {}, notes: [] }, limits: {}, stream }
    last().events.opened()
    last().say(['welcome', PROTOCOL + 1, whole])
    expect(last().closed?.[0]).toBe(CLOSE.malformed)
  })

  it('fails if no server answers', async () => {
    const { last, opening, clock } = scripted({ timeout: 1000 })
    const state = later(opening)
    await clock.advance(1000)
    expect(last().closed?.[0]).toBe(CLOSE.done)
    expect(state.error).toMatchObject({ code: 'timeout' })
  })

  it('fails at once if the server rejects the credentials', async () => {
    const { last, opening, clock, streams } = scripted()
    last().events.closed(CLOSE.unauthenticated, 'no such token')
    await expect(opening).rejects.toMatchObject({
      code: 'unauthenticated',
      message: 'no such token',
    })
    await clock.advance(60_000)
    expect(streams).toHaveLength(1)
  })

  it('keeps the process running until it is open, through every attempt', async () => {
    const { last, opening, clock } = scripted()
    last().events.closed(1006, '')
    expect(clock.keepsRunning).toBe(true)
    await clock.advance(20)
    last().events.opened()
    expect(clock.keepsRunning).toBe(true)
    last().events.closed(1006, '')
    await clock.advance(40)
    last().welcome()
    await opening
    expect(clock.keepsRunning).toBe(false)
  })

  it('delivers messages that arrive with the welcome', async () => {
    const { last, opening, clock } = scripted({ timeout: 1000 })
    last().welcome({}, [
      ['bye', 'already'],
      [1, 1],
    ])
    const store = await opening
    last().events.text('[]')
    void store.read(KEY)
    await clock.advance(0)
    last().say([1, 1, { claims: [] }])
    await clock.advance(60_000)
    expect(last().closed).toBeUndefined()
  })
})

describe('the later streams', () => {
  it('do not keep the process running', async () => {
    const { last, clock } = await opened()
    last().events.closed(1006, '')
    expect(clock.keepsRunning).toBe(false)
    await clock.advance(20)
    expect(last().options.keepAlive).toBe(false)
    last().events.opened()
    expect(clock.keepsRunning).toBe(false)
  })

  it.each([
    [0, 10],
    [1, 20],
  ])(
    'are opened after a delay that is randomly shortened by up to a half: %i',
    async (next, rest) => {
      const { last, clock, streams } = await opened({
        random: { next: () => next, id: () => 'id' },
      })
      last().events.closed(1006, '')
      await clock.advance(rest - 1)
      expect(streams).toHaveLength(1)
      await clock.advance(1)
      expect(streams).toHaveLength(2)
    },
  )

  it('have the same identity', async () => {
    const { last, clock, streams } = await opened({ tied: true })
    last().events.closed(1006, '')
    await clock.advance(20)
    last().welcome()
    const hello = streams.map(({ frames }) => frames[0])
    expect(hello[1]).toEqual(hello[0])
  })

  it('may have other limits; the guarantees stay unchanged', async () => {
    const { store, last, clock } = await opened({}, { frameMessages: 1 })
    const { guarantees } = store
    last().events.closed(1006, '')
    await clock.advance(20)
    last().welcome({ frameMessages: 2 })
    for (let at = 0; at < 3; at++) void store.read(KEY)
    await clock.advance(0)
    expect(
      last()
        .frames.slice(1)
        .map((frame) => frame.length),
    ).toEqual([2, 1])
    expect(store.guarantees).toBe(guarantees)
  })

  it('end when the server refuses one of them', async () => {
    const { store, last, clock, streams } = await opened()
    last().events.closed(1006, '')
    const waiting = later(store.read(KEY))
    await clock.advance(20)
    last().events.opened()
    last().say(['refused', 'unsupported', 'too old'])
    await clock.advance(0)
    expect(last().closed).toEqual([CLOSE.done, ''])
    expect(waiting.error).toMatchObject({ code: 'unsupported', message: 'too old' })
    await expect(store.read(KEY)).rejects.toThrowError(code('unsupported'))
    await clock.advance(60_000)
    expect(streams).toHaveLength(2)
  })

  it('end when the server rejects the credentials: watches get the reason', async () => {
    const { store, last, clock } = await opened()
    last().events.closed(1006, '')
    const notices: Notice[] = []
    store.watch({ lease: 'l' }, (notice) => notices.push(notice))
    await clock.advance(20)
    last().events.closed(CLOSE.unauthenticated, 'revoked')
    expect(notices).toMatchObject([{ type: 'interrupted', error: { code: 'unauthenticated' } }])
  })

  it('fail calls that were sent before the server stopped as announced', async () => {
    const { store, last, clock, streams } = await opened()
    const call = later(store.grant(SPEC))
    await clock.advance(0)
    last().say(['bye', 'a restart'])
    last().events.closed(CLOSE.goingAway, 'a restart')
    await clock.advance(0)
    expect(call.error).toMatchObject({ code: 'unknown-outcome' })
    await clock.advance(20)
    expect(streams).toHaveLength(2)
  })
})

describe('a store that is being closed', () => {
  it('is closed when the stream is, and opens no other stream', async () => {
    const { store, last, clock, streams } = await opened()
    last().isPolite = false
    const closing = later(store.close())
    await clock.advance(0)
    expect(last().closed?.[0]).toBe(CLOSE.done)
    // The store is already leaving.
    last().say(['bye', 'a restart'])
    await clock.advance(10)
    expect('answer' in closing).toBe(false)
    last().events.closed(1006, '')
    await clock.advance(60_000)
    expect('answer' in closing).toBe(true)
    expect(streams).toHaveLength(1)
  })
})

describe('the secrets of leases', () => {
  const granted = { outcome: 'granted', lease: 'l~secret', ahead: [] }

  it.each([
    ['a token', { token: 't' }, 'l'],
    ['a certificate', { tls: { cert: 'c' } }, 'l'],
    ['no certificate of its own', { tls: { ca: 'c' } }, 'l~secret'],
    ['neither', {}, 'l~secret'],
  ])('are hidden from callers of a store with %s', async (_with, options, lease) => {
    const { store, last, clock } = await opened(options)
    const call = later(store.grant(SPEC))
    await clock.advance(0)
    last().say([1, 1, granted])
    await clock.advance(0)
    expect(call.answer).toMatchObject({ lease })
    void store.read({ lease })
    await clock.advance(0)
    expect(last().asked.at(-1)).toEqual([2, 'read', { lease: 'l~secret' }])
  })
})

describe('leases that are not tied', () => {
  it('are not tied on the next stream either', async () => {
    const { store, last, clock } = await opened()
    void store.grant(SPEC)
    await clock.advance(0)
    last().say([1, 1, { outcome: 'granted', lease: 'l', ahead: [] }])
    await clock.advance(0)
    last().events.closed(1006, '')
    await clock.advance(20)
    last().welcome()
    await clock.advance(0)
    expect(last().asked).toEqual([])
  })
})
