import { describe, expect, it } from 'vitest'
import type { Notice } from '../../../src/port/index.ts'
import { CLOSE, PROTOCOL, remoteStore } from '../../../src/stores/remote/index.ts'
import { later, opened, scripted } from './scripted-server.ts'

const KEY = { key: 'k' }
const code = (name: string) => expect.objectContaining({ code: name })

describe('a store that is being opened', () => {
  it('sends hello, and is open when the server has sent its welcome', async () => {
    const { last, opening, streams } = scripted({ token: 't', headers: { 'x-proxy': '1' } })
    expect(last().url.href).toBe('http://localhost:7420/v1/stream')
    expect(last().options).toMatchObject({
      ...{ timeout: 5000, silence: 5000, keepAlive: true },
      headers: { authorization: 'Bearer t', 'x-proxy': '1' },
    })
    last().welcome()
    const store = await opening
    expect(last().frames).toEqual([[['hello', PROTOCOL, { client: expect.any(String), tied: 0 }]]])
    expect(store.guarantees).toMatchObject({ inProcess: false, ttl: { max: Infinity } })
    expect(store.guarantees.notes.at(-1)).toContain('http://localhost:7420')
    expect(streams).toHaveLength(1)
  })

  it.each([
    ['ws://h/proxy/', 'http://h/proxy/v1/stream'],
    ['wss://h:1', 'https://h:1/v1/stream'],
    ['https://h//', 'https://h/v1/stream'],
  ])('finds the stream at %s', (url, stream) => {
    const urls: string[] = []
    const socket = (given: URL) => {
      urls.push(given.href)
      return { send: () => true, close: () => {} }
    }
    void remoteStore(url, { socket }).catch(() => {})
    expect(urls).toEqual([stream])
  })

  it.each([
    ['nonsense', {}, /^server "nonsense"/],
    ['ftp://h', {}, /^server "ftp:/],
    ['xhttp://h', {}, /^server "xhttp:/],
    ['http://h', { accessToken: 'a\nb' }, /^accessToken /],
    ['http://h', { headers: { 'a b': 'c' } }, /^header "a b" /],
    ['http://h', { headers: { a: 'b\r\nc' } }, /^header "a" /],
    ['http://h', { headers: { a: undefined as never } }, /^header "a" /],
    ['http://h', { timeout: 0 }, /^timeout /],
    ['http://h', { silence: -1 }, /^silence /],
    ['http://h', { tied: { linger: Infinity } }, /^linger /],
    ['http://h', { tied: { linger: -1 } }, /^linger /],
  ])('is refused with invalid arguments: %s %j', async (url, options, message) => {
    const refused = remoteStore(url, options)
    await expect(refused).rejects.toThrowError(code('invalid-argument'))
    await expect(refused).rejects.toThrowError(message)
  })

  it.each([
    [undefined, undefined],
    [false, undefined],
    [true, 0],
    [{ linger: '2s' as const }, 2000],
  ])('ties with %j', async (tied, linger) => {
    const { last } = await opened({ tied })
    expect((last().frames[0]![0] as unknown[])[2]).toMatchObject(
      linger === undefined ? { client: expect.any(String) } : { tied: linger },
    )
  })

  it('fails if it reaches no server in time, and reports the cause', async () => {
    const { last, opening, clock, streams } = scripted({ timeout: 1000 })
    last().events.closed(1006, 'it is away')
    await clock.advance(999)
    expect(streams).toHaveLength(2)
    const state = later(opening)
    await clock.advance(1)
    expect(state.error).toMatchObject({ code: 'timeout' })
    expect(state.error?.message).toContain('it is away')
    const { length } = streams
    await clock.advance(60_000)
    expect(streams).toHaveLength(length)
  })

  it.each([
    ['a version that it does not speak', ['refused', 'unsupported', 'no'], 'unsupported'],
    ['a code that it does not know', ['refused', 'odd', 'no'], 'unknown-outcome'],
  ])('is refused by %s', async (_what, message, refusal) => {
    const { last, opening, streams, clock } = scripted()
    last().events.opened()
    last().say(message)
    await expect(opening).rejects.toThrowError(code(refusal))
    await clock.advance(60_000)
    expect([streams.length, last().closed?.[0]]).toEqual([1, CLOSE.done])
  })

  it.each([
    ['no welcome', [['hi']]],
    ['nothing', []],
    ['a welcome of another version', [['welcome', 2, {}]]],
    ['a welcome of nothing', [['welcome', 1, {}]]],
  ])('keeps trying after %s', async (_what, messages) => {
    const { streams, opening, clock, last } = scripted()
    streams[0]!.events.opened()
    streams[0]!.say(...messages)
    expect(streams[0]!.closed?.[0]).toBe(CLOSE.malformed)
    await clock.advance(20)
    last().welcome()
    await opening
  })

  it.each([
    { guarantees: undefined },
    { guarantees: { ttl: {} } },
    { guarantees: { ttl: {}, notes: 'x' } },
    { limits: undefined },
    { stream: undefined },
    { stream: { frameBytes: 0, frameMessages: 1, inFlight: 1 } },
    { stream: { frameBytes: 1, frameMessages: 0, inFlight: 1 } },
    { stream: { frameBytes: 1, frameMessages: 1, inFlight: 0 } },
  ])('does not accept an incomplete welcome: %j', (wrong) => {
    const { last } = scripted()
    const stream = { frameBytes: 1, frameMessages: 1, inFlight: 1 }
    const whole = { guarantees: { ttl: {}, notes: [] }, limits: {}, stream }
    last().events.opened()
    last().say(['welcome', PROTOCOL, { ...whole, ...wrong }])
    expect(last().closed?.[0]).toBe(CLOSE.malformed)
  })

  it('disconnects from a server that sends no welcome in time', async () => {
    const { clock, last } = await opened({ timeout: 1000 })
    last().events.closed(1006, '')
    await clock.advance(20)
    const second = last()
    second.events.opened()
    await clock.advance(999)
    expect(second.closed).toBeUndefined()
    await clock.advance(1)
    expect(second.closed?.[0]).toBe(CLOSE.malformed)
  })
})

describe('a store that connects again', () => {
  it('waits longer each time, up to two seconds, until a stream was stable', async () => {
    const { streams, clock, last } = await opened()
    await clock.advance(5000)
    last().events.closed(1006, '')
    const rests: number[] = []
    for (let at = 0; at < 10; at++) {
      const { length } = streams
      const begun = clock.now()
      while (streams.length === length) await clock.advance(1)
      rests.push(clock.now() - begun)
      last().events.closed(1006, '')
    }
    for (const [at, rest] of rests.entries()) {
      const longest = Math.min(20 * 2 ** at, 2000)
      expect(rest).toBeGreaterThanOrEqual(longest / 2)
      expect(rest).toBeLessThanOrEqual(longest + 1)
    }
    await clock.advance(2001)
    expect(last().options.keepAlive).toBe(false)
    last().welcome()
    await clock.advance(999)
    last().events.closed(1006, '')
    // It was not open long enough to count as stable.
    await clock.advance(999)
    const { length } = streams
    await clock.advance(1001)
    expect(streams).toHaveLength(length + 1)
    last().welcome()
    await clock.advance(1000)
    last().events.closed(1006, '')
    await clock.advance(20)
    expect(streams).toHaveLength(length + 2)
  })

  it('stops if its access token is no longer valid', async () => {
    const { last, store, clock, streams } = await opened()
    const pending = later(store.read(KEY))
    const notices: Notice[] = []
    store.watch({ prefix: '' }, (notice) => notices.push(notice))
    await clock.advance(0)
    last().events.closed(CLOSE.unauthenticated, 'revoked')
    await clock.advance(0)
    expect(pending.error).toMatchObject({ code: 'unknown-outcome' })
    expect(notices).toMatchObject([{ type: 'interrupted', error: { code: 'unauthenticated' } }])
    await expect(store.read(KEY)).rejects.toThrowError(code('unauthenticated'))
    expect(() => store.watch({ prefix: '' }, () => {})).toThrowError(code('unauthenticated'))
    await clock.advance(60_000)
    expect(streams).toHaveLength(1)
  })

  it('closes a stream that does not speak JSON', async () => {
    for (const text of ['x', '{}', '[1]', 'null']) {
      const { last } = await opened()
      last().events.text(text)
      expect(last().closed?.[0]).toBe(CLOSE.malformed)
    }
  })
})
