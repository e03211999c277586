import { describe, expect, it } from 'vitest'
import type { Notice } from '../../../src/port/index.ts'
import { later, opened, STREAM } from './scripted-server.ts'

const KEY = { key: 'k' }
const SPEC = { holder: 'h', ttl: 1000 }
const BUSY = { outcome: 'busy', ahead: [] }
const code = (name: string) => expect.objectContaining({ code: name })

type Opened = Awaited<ReturnType<typeof opened>>

/** The number of messages in each frame after the hello. */
const sizes = ({ last }: Pick<Opened, 'last'>) =>
  last()
    .frames.slice(1)
    .map((frame) => frame.length)

/** The ids of the requests. */
const ids = ({ last }: Pick<Opened, 'last'>) => last().asked.map(([id]) => id)

/** Breaks the stream and opens another. */
async function reconnect({ last, clock }: Opened, stream: object = {}): Promise<void> {
  last().events.closed(1006, 'broken')
  await clock.advance(20)
  last().welcome(stream)
  await clock.advance(0)
}

describe('one frame', () => {
  // All of these messages are equally long. A comma or a bracket follows each.
  const message = JSON.stringify([1, 'read', KEY]).length + 1

  it.each([
    ['bytes', (characters: number) => ({ frameBytes: 3 * (characters + 64) })],
    ['values', (characters: number) => ({ frameValues: (characters + 64) / 2 })],
  ])("is filled up to the server's limit of %s", async (_what, limits) => {
    const enough = await opened({}, limits(3 * message))
    for (let at = 0; at < 3; at++) void enough.store.read(KEY)
    await enough.clock.advance(0)
    expect(sizes(enough)).toEqual([3])
    const few = await opened({}, limits(3 * message - 1))
    for (let at = 0; at < 3; at++) void few.store.read(KEY)
    await few.clock.advance(0)
    expect(sizes(few)).toEqual([2, 1])
  })

  it('has at most 64 KiB, if the server accepts more; one message may be longer', async () => {
    const scene = await opened({}, { frameBytes: 1 << 30, frameValues: undefined })
    const update = (length: number) =>
      void scene.store.update({ lease: 'l', key: 'k', token: 1, value: 'v'.repeat(length) })
    const frame = JSON.stringify([1, 'update', { lease: 'l', key: 'k', token: 1, value: '' }])
    const half = 32 * 1024 - frame.length - 1
    for (const length of [half, half, half, half + 1, 64 * 1024, 1]) update(length)
    await scene.clock.advance(0)
    expect(sizes(scene)).toEqual([2, 1, 1, 1, 1])
  })

  it('contains every watch first, and then calls, in as many frames as needed', async () => {
    const scene = await opened({}, { frameMessages: 2 })
    void scene.store.read(KEY)
    void scene.store.read(KEY)
    for (const prefix of ['a', 'b', 'c']) scene.store.watch({ prefix }, () => {})
    await scene.clock.advance(0)
    expect(scene.last().frames.slice(1)).toEqual([
      [
        [3, 'watch', { prefix: 'a' }],
        [4, 'watch', { prefix: 'b' }],
      ],
      [
        [5, 'watch', { prefix: 'c' }],
        [1, 'read', KEY],
      ],
      [[2, 'read', KEY]],
    ])
  })

  it("contains watches up to the server's limit of characters", async () => {
    const text = JSON.stringify([1, 'watch', { prefix: 'a' }]).length + 1
    const enough = await opened({}, { frameBytes: 3 * (64 + 2 * text) })
    for (const prefix of ['a', 'b']) enough.store.watch({ prefix }, () => {})
    await enough.clock.advance(0)
    expect(sizes(enough)).toEqual([2])
    const few = await opened({}, { frameBytes: 3 * (64 + 2 * text) - 3 })
    for (const prefix of ['a', 'b']) few.store.watch({ prefix }, () => {})
    few.store.watch({ prefix: 'long'.repeat(20) }, () => {})
    await few.clock.advance(0)
    expect(sizes(few)).toEqual([1, 1, 1])
  })

  it('has half of the calls if answers come quickly, so that both sides work at once', async () => {
    for (const [ms, expected] of [
      [1, [40, 20, 20]],
      [2, [40, 40]],
    ] as const) {
      const scene = await opened()
      const read = (count: number) => {
        for (let at = 0; at < count; at++) void later(scene.store.read(KEY))
      }
      read(40)
      await scene.clock.advance(ms)
      scene.last().say(...ids(scene).map((id) => [id, 1, { count: 0, claims: [] }]))
      await scene.clock.advance(0)
      read(40)
      await scene.clock.advance(0)
      expect(sizes(scene)).toEqual(expected)
    }
  })

  it('is sent at the end of the turn, unless 64 calls can be sent together', async () => {
    const scene = await opened({}, { inFlight: 100 })
    for (let at = 0; at < 63; at++) void scene.store.read(KEY)
    expect(sizes(scene)).toEqual([])
    for (let at = 0; at < 65; at++) void scene.store.read(KEY)
    // 64 were sent. With the next 64, too many would be in flight.
    expect(sizes(scene)).toEqual([64])
    await scene.clock.advance(0)
    expect(sizes(scene)).toEqual([64, 36])
    const exact = await opened({}, { inFlight: 128 })
    for (let at = 0; at < 128; at++) void exact.store.read(KEY)
    expect(sizes(exact)).toEqual([64, 64])
  })

  it('is never larger than the server accepts: a larger call is refused', async () => {
    const request = { lease: 'l', key: 'k', token: 1, value: '€'.repeat(100) }
    const bytes = Buffer.byteLength(JSON.stringify([1, 'update', request]))
    const exact = await opened({}, { frameBytes: bytes + 2 })
    void exact.store.update(request)
    await exact.clock.advance(0)
    expect(exact.last().asked).toHaveLength(1)
    const few = await opened({}, { frameBytes: bytes + 1 })
    await expect(few.store.update(request)).rejects.toThrowError(code('limit-exceeded'))
    await few.clock.advance(0)
    expect(few.last().asked).toEqual([])
  })
})

describe('a renewal of many leases', () => {
  const leases = Array.from({ length: 30_000 }, (_, at) => `lease-${100_000 + at}`)

  it('is one message if it is short, otherwise several of 256 Ki characters', async () => {
    const scene = await opened({}, { frameBytes: 1 << 30, frameValues: 1 << 30 })
    void scene.store.renew(['a', 'b', 'c'])
    void scene.store.renew(leases)
    await scene.clock.advance(0)
    const counts = scene.last().asked.map(([, , group]) => (group as string[]).length)
    const each = Math.floor((256 * 1024) / ('lease-100000'.length + 3))
    expect(counts).toEqual([3, each, leases.length - each])
  })

  it('of none is answered at once', async () => {
    const { store } = await opened()
    expect(await store.renew([])).toEqual({ lost: [], capped: [] })
  })
})

describe('calls in flight', () => {
  it('do not exceed the limit after a break that failed some of them', async () => {
    const scene = await opened({}, { inFlight: 2 })
    const { store, clock } = scene
    // Without a request id these are not sent again.
    const lost = [later(store.grant(SPEC)), later(store.grant(SPEC))]
    await clock.advance(0)
    await reconnect(scene, { inFlight: 2 })
    for (const { error } of lost) expect(error).toMatchObject({ code: 'unknown-outcome' })
    for (let at = 0; at < 5; at++) void store.read(KEY)
    await clock.advance(0)
    expect(scene.last().asked).toHaveLength(2)
  })

  it('do not include those that the server wants to be sent again', async () => {
    const scene = await opened({}, { inFlight: 1 })
    void scene.store.read(KEY)
    await scene.clock.advance(0)
    scene.last().say([1, 2], [1, 2])
    await scene.clock.advance(0)
    expect(ids(scene)).toEqual([1, 1])
  })

  it('do not include those that timed out, but all others', async () => {
    const scene = await opened({ timeout: 1000 }, { inFlight: 2 })
    const { store, clock, last } = scene
    for (let at = 0; at < 4; at++) void store.read(KEY).catch(() => {})
    await clock.advance(1000)
    expect(ids(scene)).toEqual([1, 2])
    for (let at = 0; at < 4; at++) void store.read(KEY)
    await clock.advance(0)
    expect(ids(scene)).toEqual([1, 2, 5, 6])
    // Late answers have no effect and make no room.
    last().say([1, 1, {}], [2, 1, {}])
    await clock.advance(0)
    expect(ids(scene)).toEqual([1, 2, 5, 6])
    last().say([5, 1, {}])
    await clock.advance(0)
    expect(ids(scene)).toEqual([1, 2, 5, 6, 7])
  })

  it('are sent on the next stream, even if there was no room on the one that broke', async () => {
    const scene = await opened()
    scene.last().hasRoom = false
    void scene.store.read(KEY)
    await scene.clock.advance(0)
    void scene.store.read(KEY)
    await scene.clock.advance(0)
    expect(ids(scene)).toEqual([1])
    await reconnect(scene)
    expect(ids(scene)).toEqual([1, 2])
  })
})

describe('the timeout of calls', () => {
  it('continues for the others when one was answered', async () => {
    const { store, clock, last } = await opened({ timeout: 1000 })
    const [one, other] = [later(store.read(KEY)), later(store.read(KEY))]
    await clock.advance(0)
    last().say([1, 1, {}])
    await clock.advance(1000)
    expect(one.answer).toEqual({})
    expect(other.error).toMatchObject({ code: 'unknown-outcome' })
  })

  it('also ends calls that were never sent, and they are not sent later', async () => {
    const scene = await opened({ timeout: 1000 })
    const { store, clock, last } = scene
    last().events.closed(1006, 'away')
    const early = later(store.read(KEY))
    await clock.advance(999)
    const late = later(store.grant(SPEC))
    await clock.advance(1)
    expect(early.error?.message).toContain('could not be reached')
    last().welcome()
    await clock.advance(0)
    expect(last().asked).toEqual([[2, 'grant', { ...SPEC, tied: false }]])
    last().say([2, 1, BUSY])
    await clock.advance(0)
    expect(late.answer).toEqual(BUSY)
  })

  it('does not say that the server could not be reached for a call on a broken stream', async () => {
    const { store, clock, last } = await opened({ timeout: 1000 })
    const call = later(store.read(KEY))
    await clock.advance(0)
    last().events.closed(1006, 'away')
    await clock.advance(1000)
    expect(call.error).toMatchObject({ code: 'unknown-outcome' })
    expect(call.error?.message).not.toContain('could not be reached')
  })

  it('keeps the process running only while a call waits', async () => {
    const { store, clock, last } = await opened({ timeout: 1000 })
    expect(clock.keepsRunning).toBe(false)
    void store.read(KEY)
    await clock.advance(0)
    expect(clock.keepsRunning).toBe(true)
    void store.read(KEY)
    void store.read(KEY).catch(() => {})
    await clock.advance(10)
    last().say([1, 1, {}], [2, 1, {}])
    expect(clock.keepsRunning).toBe(true)
    await clock.advance(990)
    expect(clock.keepsRunning).toBe(false)
    store.watch({ prefix: '' }, () => {})
    await clock.advance(0)
    expect(clock.keepsRunning).toBe(false)
    void store.read(KEY)
    await clock.advance(10)
    void store.read(KEY)
    await clock.advance(10)
    last().say([5, 1, {}], [6, 1, {}])
    expect(clock.keepsRunning).toBe(false)
  })
})

describe('a watch', () => {
  it('that was opened without a stream is sent once on the next one', async () => {
    const { store, clock, last } = await opened()
    last().events.closed(1006, 'away')
    store.watch({ prefix: 'a' }, () => {})
    store.watch({ prefix: 'b' }, () => {}).close()
    const notices: Notice[] = []
    store.watch({ lease: 'l' }, (notice) => notices.push(notice))
    await clock.advance(20)
    // An attempt that fails changes nothing.
    last().events.closed(1006, 'still away')
    await clock.advance(40)
    last().welcome()
    await clock.advance(0)
    expect(last().asked.map(([, ...rest]) => rest)).toEqual([
      ['watch', { prefix: 'a' }],
      ['watch', { lease: 'l' }],
    ])
    await clock.advance(60_000)
    expect(notices).toEqual([])
  })

  it('keeps its target, even if the caller has changed its object since', async () => {
    const scene = await opened()
    const target = { prefix: 'a' }
    scene.store.watch(target, () => {})
    target.prefix = 'b'
    await reconnect(scene)
    expect(scene.last().asked).toEqual([[1, 'watch', { prefix: 'a' }]])
  })

  it('is not interrupted later by a break that has ended', async () => {
    const scene = await opened({ timeout: 1000 })
    const notices: Notice[] = []
    scene.store.watch({ prefix: 'a' }, (notice) => notices.push(notice))
    await scene.clock.advance(0)
    await reconnect(scene)
    await scene.clock.advance(5000)
    scene.store.watch({ prefix: 'b' }, (notice) => notices.push(notice))
    await scene.clock.advance(5000)
    expect(notices).toEqual([])
  })

  it('of a lease continues after a notice that the lease will end', async () => {
    const { store, clock, last } = await opened()
    const notices: Notice[] = []
    store.watch({ lease: 'l' }, (notice) => notices.push(notice))
    await clock.advance(0)
    const capped = { type: 'capped', lease: 'l', remaining: 5 }
    // Anything else is not treated as a notice.
    last().say(['other', 1, capped], ['notice', 1, capped], ['notice', 1, capped])
    expect(notices).toEqual([capped, capped])
  })

  it('is not notified if another observer closes it when both are interrupted', async () => {
    const { store, clock, last } = await opened()
    const told: string[] = []
    store.watch({ lease: 'a' }, () => {
      told.push('a')
      other.close()
    })
    const other = store.watch({ lease: 'b' }, () => told.push('b'))
    await clock.advance(0)
    last().events.closed(1006, '')
    expect(told).toEqual(['a'])
  })

  it('whose observer throws something that is not an Error still emits a warning', async () => {
    const { store, clock, last } = await opened()
    const warned: unknown[] = []
    const onWarning = (warning: unknown) => warned.push(warning)
    process.on('warning', onWarning)
    store.watch({ prefix: '' }, () => {
      throw 5
    })
    await clock.advance(0)
    last().say(['notice', 1, { type: 'watching', revision: 1 }])
    await new Promise((resolve) => setImmediate(resolve))
    process.off('warning', onWarning)
    expect(warned).toMatchObject([{ message: '5' }])
  })
})

it('a server that announces no limit for values has none', async () => {
  const { frameValues: _, ...stream } = STREAM
  const scene = await opened({}, { ...stream, frameValues: undefined })
  for (let at = 0; at < 10; at++) void scene.store.read(KEY)
  await scene.clock.advance(0)
  expect(sizes(scene)).toEqual([10])
})
