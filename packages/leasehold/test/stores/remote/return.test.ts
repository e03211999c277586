import { describe, expect, it } from 'vitest'
import { CLOSE } from '../../../src/stores/remote/index.ts'
import { later, scripted } from './scripted-server.ts'

const A = 'http://a:7420'
const B = 'http://b:7420'
const DONE = 1
const READ = [1, DONE, 0, 1, [], false, false]

/** A client that could not reach the first server, and uses the second. */
async function onSecond() {
  const made = scripted({}, [A, B])
  const { clock, streams, opening } = made
  streams[0]!.events.closed(1006, 'refused')
  await clock.advance(100)
  const second = streams[1]!
  expect(second.url.host).toBe('b:7420')
  second.welcome({}, [], 'server b')
  const store = await opening
  /** Waits for the next trial of the first server. */
  const trial = async () => {
    const before = streams.length
    for (let waited = 0; streams.length === before && waited < 120; waited++) {
      await clock.advance(1000)
    }
    return streams.at(-1)!
  }
  return { ...made, second, store, trial }
}

describe('a client that uses another server than its first', () => {
  it('returns to the first when that answers a reading', async () => {
    const { second, trial, streams, clock } = await onSecond()
    const tried = await trial()
    expect(tried.url.host).toBe('a:7420')
    tried.welcome({}, [], 'server a')
    expect(second.closed, 'a welcome alone is not enough').toBeUndefined()
    expect(tried.asked).toMatchObject([[1, 'read', {}]])
    tried.say(READ)
    expect(tried.closed?.[0]).toBe(CLOSE.done)
    expect(second.closed?.[0]).toBe(CLOSE.moved)
    await clock.advance(1)
    expect(streams).toHaveLength(4)
    expect(streams[3]!.url.host).toBe('a:7420')
    streams[3]!.welcome({}, [], 'server a')
    await clock.advance(600_000)
    expect(streams, 'it stays with the first').toHaveLength(4)
  })

  it('waits for the answers of its calls, and makes new ones at the first', async () => {
    const { second, store, trial, streams, clock } = await onSecond()
    const tried = await trial()
    const before = later(store.read({ key: 'before' }))
    await clock.advance(0)
    tried.welcome({}, [], 'server a')
    tried.say(READ)
    const after = later(store.read({ key: 'after' }))
    await clock.advance(10)
    expect([second.closed, second.asked.length]).toEqual([undefined, 1])
    second.say([second.asked[0]![0], DONE, 0, 0, [], false, false])
    await clock.advance(10)
    expect(before.answer).toBeDefined()
    expect(second.closed?.[0]).toBe(CLOSE.moved)
    streams[3]!.welcome({}, [], 'server a')
    await clock.advance(0)
    expect(streams[3]!.asked).toMatchObject([[expect.any(Number), 'read', { key: 'after' }]])
    expect(after.error).toBeUndefined()
  })

  it('returns without the answer of a call that the second does not answer', async () => {
    const { second, store, trial, streams, clock } = await onSecond()
    const tried = await trial()
    const unanswered = later(store.read({ key: 'unanswered' }))
    await clock.advance(0)
    tried.welcome({}, [], 'server a')
    tried.say(READ)
    await clock.advance(749)
    expect(second.closed).toBeUndefined()
    await clock.advance(1)
    expect(second.closed?.[0]).toBe(CLOSE.moved)
    await clock.advance(1)
    streams[3]!.welcome({}, [], 'server a')
    await clock.advance(0)
    const [[id]] = streams[3]!.asked as [[number]]
    streams[3]!.say([id, DONE, 0, 0, [], false, false])
    await clock.advance(0)
    expect(unanswered.error).toBeUndefined()
  })

  it.each([
    ['refuses the stream', (stream: Stream) => stream.events.closed(1006, 'refused')],
    [
      'does not reach its engine',
      (stream: Stream) => {
        stream.welcome({}, [], 'server a')
        stream.say([1, 0, 'storage-failed', 'the engine is away'])
      },
    ],
    [
      'is the same server',
      (stream: Stream) => {
        stream.welcome({}, [], 'server b')
        stream.say(READ)
      },
    ],
    ['is silent', () => {}],
  ])('stays if the first %s, and tries again', async (_name, answer) => {
    const { second, trial } = await onSecond()
    answer(await trial())
    const again = await trial()
    expect(again.url.host).toBe('a:7420')
    expect(second.closed).toBeUndefined()
  })

  it('tries no more when it is closed', async () => {
    const { store, streams, clock } = await onSecond()
    await store.close()
    await clock.advance(120_000)
    expect(streams).toHaveLength(2)
  })
})

type Stream = Awaited<ReturnType<Awaited<ReturnType<typeof onSecond>>['trial']>>
