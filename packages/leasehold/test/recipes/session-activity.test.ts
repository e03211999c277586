import { describe, expect, it } from 'vitest'
import type { Claim } from '../../src/port/index.ts'
import { isDue, newSight, noteReading, Sights } from '../../src/recipes/session/activity.ts'
import { decode, encode } from '../../src/recipes/session/record.ts'

describe('when a session was last renewed, as far as readings tell', () => {
  it('is after the last reading before its deadline moved', () => {
    const sight = newSight('1.1', 0)
    noteReading(sight, 1000, 10)
    noteReading(sight, 1000, 20)
    noteReading(sight, 2000, 30)
    expect(sight.renewedAfter).toBe(20)
  })

  it('is not told by an old answer, whenever it was asked for', () => {
    const sight = newSight('1.1', 0)
    noteReading(sight, 1000, 10)
    noteReading(sight, 2000, 30)
    // From a replica that is behind: somebody may have renewed between 30 and 40.
    noteReading(sight, 1000, 40)
    noteReading(sight, 3000, 50)
    expect(sight.renewedAfter).toBe(30)
  })

  it('is due again after a tenth of the ttl', () => {
    const sight = newSight('1.1', 100)
    expect([isDue(sight, 1000, 199), isDue(sight, 1000, 200)]).toEqual([false, true])
  })
})

describe('the sessions that a process has seen', () => {
  it('are known by their lease: what is known of an old one says nothing of its successor', () => {
    const sights = new Sights()
    const sight = sights.set('ref', newSight('1.1', 5))
    expect(sights.get('ref', '1.1')).toBe(sight)
    expect(sights.get('ref', '1.2')).toBeUndefined()
    expect(sights.last('ref')).toBe(sight)
    sights.delete('ref')
    expect(sights.get('ref', '1.1')).toBeUndefined()
  })

  it('are at most 10,000: the one that was not seen for the longest is forgotten', () => {
    const sights = new Sights()
    for (let i = 0; i < 10_000; i++) sights.set(`${i}`, newSight('1.1', 0))
    expect(sights.last('0')).toBeDefined()
    sights.set('0', newSight('1.1', 0))
    sights.set('one more', newSight('1.1', 0))
    expect(sights.last('1')).toBeUndefined()
    expect(sights.last('0')).toBeDefined()
    expect(sights.last('2')).toBeDefined()
  })
})

describe('what is stored of a session', () => {
  const claim = { key: 'session/main/id/x', lease: '1.1', token: 1, holder: 'ada' } as Claim

  it.each([
    { user: 'ada', ttl: 1000, max: 5000, since: 7, data: '{"a":"line\\n"}' },
    { user: undefined, ttl: Infinity, max: Infinity, since: undefined, data: 'null' },
  ])('is read as it was written: $ttl $max', (record) => {
    expect(decode({ ...claim, value: encode(record) })).toEqual(record)
  })
})
