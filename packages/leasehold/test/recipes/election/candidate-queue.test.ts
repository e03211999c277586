import { describe, expect, it } from 'vitest'
import { successorOf } from '../../../src/recipes/election/candidate-queue.ts'
import {
  type Candidate,
  candidateOf,
  leaderOf,
  preemptor,
  preferredBehind,
} from '../../../src/recipes/index.ts'

/** A queue such as `a b:2 c:3!`: names with their priorities, and who asks a leader to step down. */
function queue(text: string): Candidate[] {
  return text.split(' ').map((word, index) => {
    const [, candidate = '', priority = 0, preempt] = /^(\w+):?(\d+)?(!)?$/.exec(word) ?? []
    return candidateOf({
      holder: candidate,
      token: index + 1,
      claimedAt: 0,
      value: JSON.stringify({ candidate, priority: Number(priority), preempt: preempt === '!' }),
    })
  })
}

describe('a candidate at the front', () => {
  it.each<[string, string, string | undefined, string | undefined]>([
    ['leads if it is alone', 'a', undefined, undefined],
    ['leads before its equals', 'a b c', undefined, undefined],
    ['leads before candidates of lower priority', 'a:2 b:1 c:1', undefined, undefined],
    ['makes room for a higher one', 'a b:1 c', undefined, 'b'],
    ['makes room for the highest', 'a b:1 c:3 d:2', undefined, 'c'],
    ['makes room for the first of the highest', 'a b:3 c:3', undefined, 'b'],
    ['makes room for the named successor, whatever its priority', 'a:9 b:5 c', 'c', 'c'],
    ['leads if it is the named successor, whatever is behind it', 'a b:9', 'a', undefined],
    ['goes by priority if the named successor is absent', 'a b:1', 'x', 'b'],
    ['leads if neither is there', 'a b', 'x', undefined],
  ])('%s: %s', (_, text, successor, expected) => {
    expect(preferredBehind(queue(text), 1, successor)?.candidate).toBe(expected)
  })

  it('considers only candidates behind it, and none if it is not in the queue', () => {
    expect(preferredBehind(queue('a:9 b c'), 2, undefined)).toBeUndefined()
    expect(preferredBehind(queue('a:9 b c'), 2, 'a')).toBeUndefined()
    expect(preferredBehind(queue('a b:1'), 7, undefined)).toBeUndefined()
    expect(preferredBehind(queue('a:9 b c:1'), 2, undefined)?.candidate).toBe('c')
  })

  it('leads at the latest when all others have let it pass: there is no endless loop', () => {
    for (const successor of [undefined, 'a', 'b', 'c', 'd']) {
      let now = queue('a:1 b c:2 d:2')
      let steps = 0
      for (; preferredBehind(now, now[0]!.token, successor) !== undefined; steps++) {
        const [first, ...rest] = now
        now = [...rest, { ...first!, token: rest.at(-1)!.token + 1 }]
        expect(steps).toBeLessThan(now.length)
      }
      expect(now[0]!.candidate).toBe(successor ?? 'c')
    }
  })
})

describe('a leader', () => {
  it.each([
    ['a b:2 c', undefined],
    ['a b:2! c', 'b'],
    ['a:2 b:2! c', undefined],
    ['a:3 b:2! c:9', undefined],
    ['a b:2! c:3!', 'c'],
  ])('is asked to step down by a higher candidate that requests it: %s', (text, expected) => {
    expect(preemptor(queue(text), 1)?.candidate).toBe(expected)
  })

  it('is preempted only by those behind it, and by nobody if it is not in the queue', () => {
    expect(preemptor(queue('a:9! b c'), 2)).toBeUndefined()
    expect(preemptor(queue('a:9 b c:1!'), 2)?.candidate).toBe('c')
    expect(preemptor(queue('a b:1!'), 7)).toBeUndefined()
  })

  it('is only a claim that says that it leads', () => {
    const claim = { holder: 'h', token: 5, claimedAt: 10, heldSince: 20 }
    expect(leaderOf([], 0)).toBeUndefined()
    for (const value of [undefined, 'plain', '[1]', 'null', '{"candidate":"a"}', '{"leads":1}']) {
      expect(leaderOf([{ ...claim, value }], 0)).toBeUndefined()
    }
    const value = JSON.stringify({ candidate: 'a', leads: true, value: 'here' })
    expect(leaderOf([{ ...claim, value }], 7)).toEqual({
      candidate: 'a',
      holder: 'h',
      term: 5,
      value: 'here',
      priority: 0,
      since: 20,
      age: 7,
    })
  })
})

describe('a claim that no candidate wrote', () => {
  const claim = { holder: 'h', token: 5, claimedAt: 10 }

  it('is a candidate with defaults, under the name of its holder', () => {
    const plain = { candidate: 'h', priority: 0, preempt: false, leads: false, value: undefined }
    const texts = ['plain', '5', 'null', '{"candidate":5,"priority":"9","preempt":1,"value":7}']
    for (const value of texts) expect(candidateOf({ ...claim, value })).toMatchObject(plain)
  })

  it('names no successor, unless it is a string', () => {
    expect(successorOf([])).toBeUndefined()
    expect(successorOf([{ ...claim, value: '{"to":5}' }])).toBeUndefined()
    expect(successorOf([{ ...claim, value: '{"to":"b"}' }])).toBe('b')
  })
})
