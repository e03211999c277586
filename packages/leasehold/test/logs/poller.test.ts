import { describe, expect, it } from 'vitest'
import type { Position } from '../../src/log/index.ts'
import { Feed } from '../../src/logs/feeds/feed.ts'
import { OpenFeeds } from '../../src/logs/feeds/open-feeds.ts'
import { Poller } from '../../src/logs/feeds/poller.ts'
import { LeaseholdError } from '../../src/port/index.ts'
import { TestClock } from '../../src/testing/index.ts'

const bytes = new Uint8Array([1])

/** A feed whose reads end on request of the test. */
function scene() {
  const seen: Position[] = []
  const follower = {
    entries: (entries: readonly { position: Position }[]) =>
      seen.push(...entries.map(({ position }) => position)),
    ended: () => {},
  }
  const feed = new Feed(0, follower, () => new LeaseholdError('unknown-outcome', 'x'))
  const reads: ((through: Position) => Promise<void>)[] = []
  const clock = new TestClock()
  const poller = new Poller(feed, { clock, poll: 1000, timeout: 500 }, async () => {
    const through = await new Promise<Position>((resolve) => {
      reads.push(async (position) => {
        resolve(position)
        await settled()
      })
    })
    while (feed.after < through) feed.deliver([{ position: feed.after + 1, bytes }])
    return false
  })
  return { feed, seen, reads, clock, poller }
}

/** Waits until all consequences so far have happened. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

describe('a poller', () => {
  it('does not read again if the current read returned the expected entry', async () => {
    const { poller, reads } = scene()
    poller.wake(1)
    poller.wake(2)
    await reads[0]!(2)
    poller.wake(2)
    await settled()
    expect(reads.length).toBe(1)
  })

  it('reads again if the current read started too early', async () => {
    const { poller, reads, seen } = scene()
    poller.wake(1)
    poller.wake(2)
    await reads[0]!(1)
    await reads[1]!(2)
    expect(reads.length).toBe(2)
    expect(seen).toEqual([1, 2])
  })

  it('reads once for a position that never arrives, and at intervals in any case', async () => {
    const { poller, reads, clock } = scene()
    poller.wake(9)
    await reads[0]!(0)
    expect(reads.length).toBe(1)
    await clock.advance(1000)
    await reads[1]!(0)
    expect(reads.length).toBe(2)
  })

  it('is not woken by an own entry that was read before its append was answered', async () => {
    const { feed, poller, reads, seen } = scene()
    const feeds = new OpenFeeds()
    feeds.add(feed, poller)
    await reads[0]!(2)
    feeds.appended(0, 1, bytes)
    feeds.appended(2, 3, bytes)
    await settled()
    expect(reads.length).toBe(1)
    feeds.appended(4, 5, bytes)
    await reads[1]!(5)
    expect(seen).toEqual([1, 2, 3, 4, 5])
  })
})
