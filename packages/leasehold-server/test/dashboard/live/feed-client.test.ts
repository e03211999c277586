import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { FeedClient } from '../../../dashboard/live/feed-client.ts'

class FakeSocket {
  static readonly OPEN = 1
  readyState = 1
  onopen: () => void = () => {}
  onmessage: (event: { data: string }) => void = () => {}
  onclose: () => void = () => {}
  constructor() {
    made.push(this)
  }
  send(): void {}
  close(): void {}
}

let made: FakeSocket[] = []
const page = { hidden: false }

beforeEach(() => {
  made = []
  vi.useFakeTimers()
  vi.stubGlobal('WebSocket', FakeSocket)
  vi.stubGlobal('document', page)
  vi.stubGlobal('location', { protocol: 'http:', host: 'localhost' })
  vi.stubGlobal('requestAnimationFrame', () => 0)
})

afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

it('finds out that the server went away while the page was hidden', () => {
  const silent = vi.fn()
  const feed = new FeedClient({ heartbeat: () => {}, time: () => {}, silent })
  feed.open()
  made[0]!.onmessage({ data: JSON.stringify({ type: 'history', samples: [] }) })
  page.hidden = true
  vi.advanceTimersByTime(60_000)
  expect(silent).not.toHaveBeenCalled()
  page.hidden = false
  vi.advanceTimersByTime(10_000)
  expect(silent).toHaveBeenCalledOnce()
  feed.close()
})
