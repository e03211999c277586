import { TestClock } from 'leasehold/testing'
import { describe, expect, it } from 'vitest'
import { everybody, type Principal } from '../../src/access/identity/principal.ts'
import { FairScheduler } from '../../src/stream/fair-scheduler.ts'
import { Inbox } from '../../src/stream/inbox.ts'
import { cut, parseFrame, parseHello } from '../../src/stream/messages.ts'
import { DEFAULT_STREAM } from '../../src/stream/options.ts'

const LIMITS = { ...DEFAULT_STREAM, frameMessages: 3, frameValues: 20 }
const parse = (text: string, limits = LIMITS) => parseFrame(Buffer.from(text), limits)

describe('a frame', () => {
  it.each([
    '[]',
    '[[]]',
    '[[1,"a"],[2,"b,[{"],[3]]',
    '[[1,"\\"],[\\\\"],[2,"\\\\"]]',
    '[[1,"ä"]]',
    // The contents of a string do not count, even after an escaped quote.
    '[[1,"\\",,,,,,,,,,,,,,,,,,,,,[[[[[[[[["]]',
  ])('is an array of messages: %s', (text) => expect(parse(text)).toEqual(JSON.parse(text)))

  it.each([
    ['{"a":1}', /not an array of messages/],
    ['5', /not an array of messages/],
    ['[[1],2]', /is not a message/],
    ['[[1]', /not JSON/],
    ['["', /not JSON/],
    ['["\\', /not JSON/],
    ['', /not JSON/],
    ['[[],[],[],[]]', /4 messages; the maximum is 3/],
    ['[[1,"a"],[2,true],[3,null],[4,{}]]', /4 messages; the maximum is 3/],
  ])('is malformed otherwise: %s', (text, message) => {
    expect(() => parse(text)).toThrowError(message)
  })

  it('has a limit for its contents: commas, colons and opening brackets', () => {
    const values = (count: number) => `[[${Array.from({ length: count }, () => 1).join(',')}]]`
    expect(parse(values(19))[0]).toHaveLength(19)
    expect(() => parse(values(20))).toThrowError(/21 values; the maximum is 20/)
    const objects = (count: number) =>
      `[[{${Array.from({ length: count }, (_, at) => `"${at}":1`).join(',')}}]]`
    expect(parse(objects(9))).toHaveLength(1)
    expect(() => parse(objects(10))).toThrowError(/22 values/)
  })

  it('is nested eight deep at most, with arrays and objects, side by side as many as fit', () => {
    const deep = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
    expect(parse(deep(8))).toHaveLength(1)
    expect(() => parse(deep(9))).toThrowError(/more than 8 levels/)
    expect(parse(`[[${'{"a":'.repeat(6)}1${'}'.repeat(6)}]]`)).toHaveLength(1)
    expect(() => parse(`[[${'{"a":'.repeat(7)}1${'}'.repeat(7)}]]`)).toThrowError(
      /more than 8 levels/,
    )
    const wide = `[[${Array.from({ length: 9 }, () => '{}').join(',')}]]`
    expect(parse(wide)[0]).toHaveLength(9)
  })
})

describe('a hello', () => {
  it('names the client, and how long it ties', () => {
    expect(parseHello(['hello', 1, { client: 'c' }])).toEqual({ client: 'c', tied: undefined })
    expect(parseHello(['hello', 1, { client: 'c', tied: 0 }])).toEqual({ client: 'c', tied: 0 })
    const longest = 'c'.repeat(128)
    expect(parseHello(['hello', 1, { client: longest }])).toMatchObject({ client: longest })
    expect(parseHello(['hello', 2, {}])).toMatchObject({ code: 'unsupported' })
  })

  it.each([
    [undefined, /must be hello/],
    [['hallo', 1, { client: 'c' }], /must be hello/],
    [['hello', 1], /client is/],
    [['hello', 1, { client: '' }], /client is/],
    [['hello', 1, { client: 5 }], /client is/],
    [['hello', 1, { client: 'c'.repeat(129) }], /1 to 128/],
    [['hello', 1, { client: 'c', tied: -1 }], /tied is/],
    [['hello', 1, { client: 'c', tied: '5' }], /tied is/],
    [['hello', 1, { client: 'c', tied: null }], /tied is/],
  ])('is malformed otherwise: %j', (message, text) => {
    expect(() => parseHello(message)).toThrowError(text)
  })
})

it('the reason of a close frame is cut between two characters', () => {
  expect(cut('short')).toBe('short')
  expect(cut('x'.repeat(200))).toBe('x'.repeat(120))
  expect(cut(`${'x'.repeat(119)}ä`)).toBe('x'.repeat(119))
  expect(cut(`${'x'.repeat(118)}ä`)).toBe(`${'x'.repeat(118)}ä`)
  expect(cut(`${'x'.repeat(117)}😀`)).toBe('x'.repeat(117))
  expect(cut(`\ufffd${'x'.repeat(200)}`)).toMatch(/^\ufffdx+$/)
})

describe('an inbox', () => {
  it('gives the messages of its frames in order', () => {
    const inbox = new Inbox()
    expect([inbox.isEmpty, inbox.isRead, inbox.first, inbox.take()]).toEqual([
      ...[true, true, undefined, undefined],
    ])
    inbox.add(Buffer.from('[[1],[2]]'))
    inbox.add(Buffer.from('[[3]]'))
    expect([inbox.isEmpty, inbox.isRead]).toEqual([false, true])
    expect(inbox.open(LIMITS)).toBe(9)
    expect([inbox.isRead, inbox.first]).toEqual([false, [1]])
    expect(inbox.take()).toEqual([1])
    expect([inbox.isRead, inbox.first, inbox.isEmpty]).toEqual([false, [2], false])
    inbox.putBack([1, 'rest'])
    expect([inbox.take(), inbox.take()]).toEqual([[1, 'rest'], [2]])
    expect([inbox.isRead, inbox.first, inbox.isEmpty]).toEqual([true, undefined, false])
    inbox.putBack([2, 'rest'])
    expect([inbox.isRead, inbox.take(), inbox.isRead]).toEqual([false, [2, 'rest'], true])
    expect(inbox.open(LIMITS)).toBe(5)
    inbox.clear()
    expect([inbox.isEmpty, inbox.isRead, inbox.first]).toEqual([true, true, undefined])
    inbox.add(Buffer.from('[]'))
    inbox.clear()
    expect(inbox.isEmpty).toBe(true)
  })
})

describe('turns', () => {
  const named = (name: string): Principal => ({ ...everybody(), name })
  function scene() {
    const clock = new TestClock()
    let now = 0
    const ticks: (() => void)[] = []
    const timed = Object.assign(Object.create(clock), {
      now: () => now,
      defer: (run: () => void) => void ticks.push(run),
    }) as TestClock
    const ran: string[] = []
    const turn = (name: string, ms: number) => () => {
      ran.push(name)
      now += ms
    }
    const tick = () => {
      const due = ticks.splice(0)
      for (const run of due) run()
      return due.length
    }
    const taken = () => ran.splice(0).join(' ')
    return { turns: new FairScheduler(timed), turn, tick, taken, ticks }
  }

  it('are given at once until the principal has used its ten milliseconds of this tick', () => {
    const { turns, turn, tick, taken } = scene()
    const [ann, bob] = [named('ann'), named('bob')]
    turns.ask(ann, turn('a1', 9))
    turns.ask(ann, turn('a2', 1))
    turns.ask(ann, turn('a3', 1))
    turns.ask(bob, turn('b1', 1))
    expect(taken()).toBe('a1 a2 b1')
    // A queued principal stays in order.
    expect(tick()).toBe(1)
    expect(taken()).toBe('a3')
    expect(tick()).toBe(0)
    turns.ask(ann, turn('a4', 8.9))
    turns.ask(ann, turn('a5', 0))
    expect(taken()).toBe('a4 a5')
  })

  it('are given at once until all have used thirty milliseconds of this tick', () => {
    const { turns, turn, tick, taken } = scene()
    for (const name of ['a', 'b', 'c', 'd', 'e']) turns.ask(named(name), turn(name, 9))
    expect(taken()).toBe('a b c d')
    tick()
    expect(taken()).toBe('e')
    turns.tick()
    tick()
    turns.ask(named('f'), turn('f', 30))
    turns.ask(named('g'), turn('g', 1))
    expect(taken()).toBe('f')
  })

  it('are shared between principals, ten milliseconds of each tick', () => {
    const { turns, turn, tick, taken, ticks } = scene()
    const [ann, bob] = [named('ann'), named('bob')]
    for (const name of ['a1', 'a2', 'a3']) turns.queue(ann, turn(name, 4))
    turns.queue(bob, turn('b1', 4))
    turns.ask(ann, turn('a4', 4))
    expect([taken(), ticks.length]).toEqual(['', 1])
    tick()
    expect([taken(), ticks.length]).toEqual(['a1 b1 a2', 1])
    tick()
    expect([taken(), ticks.length]).toEqual(['a3 a4', 0])
    turns.queue(ann, turn('a5', 10))
    turns.queue(bob, turn('b2', 0))
    tick()
    expect([taken(), ticks.length]).toEqual(['a5', 1])
  })

  it('that are requested in a turn come in a later tick', () => {
    const { turns, turn, tick, taken } = scene()
    const ann = named('ann')
    turns.queue(ann, () => turns.queue(ann, turn('again', 0)))
    turns.queue(ann, turn('second', 0))
    tick()
    expect(taken()).toBe('second')
    tick()
    expect(taken()).toBe('again')
  })

  it('number the ticks', () => {
    const { turns, tick, ticks } = scene()
    const first = turns.tick()
    expect([turns.tick(), ticks.length]).toEqual([first, 1])
    tick()
    expect(turns.tick()).toBe(first + 1)
  })
})
