import { EventEmitter } from 'node:events'
import { TestClock } from 'leasehold/testing'
import { describe, expect, it } from 'vitest'
import { EventStream } from '../../../src/http/responses/event-stream.ts'

/** The response of a reader that reads nothing, or all. */
class TestResponse extends EventEmitter {
  status = 0
  headers: Record<string, string> = {}
  isFlushed = false
  readonly written: string[] = []
  writableLength = 0
  writableEnded = false
  destroyed = false

  writeHead(status: number, headers: Record<string, string>): void {
    Object.assign(this, { status, headers })
  }

  flushHeaders(): void {
    this.isFlushed = true
  }

  write(text: string): void {
    this.written.push(text)
  }

  end(): void {
    this.writableEnded = true
  }

  destroy(): void {
    this.destroyed = true
  }
}

function scene() {
  const clock = new TestClock()
  const response = new TestResponse()
  let dropped = 0
  const stream = new EventStream(response as never, {
    ...{ clock, heartbeat: 1000, buffered: 100 },
    dropped: () => void dropped++,
  })
  return { clock, response, stream, dropped: () => dropped }
}

describe('a stream of events', () => {
  it('starts at once, and no proxy may cache or delay it', () => {
    const { response } = scene()
    expect([response.status, response.isFlushed]).toEqual([200, true])
    expect(response.headers).toEqual({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      'x-content-type-options': 'nosniff',
    })
  })

  it('follows the standard, with an id if there is one', () => {
    const { response, stream } = scene()
    stream.send('changes', { revision: 7 }, 7)
    stream.send('bye', null)
    expect(response.written).toEqual([
      'id: 7\nevent: changes\ndata: {"revision":7}\n\n',
      'event: bye\ndata: null\n\n',
    ])
  })

  it('sends regular signs of life until it is closed', async () => {
    const { clock, response, stream } = scene()
    let closed = 0
    stream.closed = () => void closed++
    await clock.advance(999)
    expect(response.written).toEqual([])
    await clock.advance(1001)
    expect(response.written).toEqual([': still here\n\n', ': still here\n\n'])
    response.emit('close')
    response.emit('close')
    await clock.advance(5000)
    expect([response.written.length, closed]).toEqual([2, 1])
  })

  it('may be closed although nobody waits for that', () => {
    expect(() => scene().response.emit('close')).not.toThrow()
  })

  it('is cut off when more than may waits to be read, and not before', () => {
    const { response, stream, dropped } = scene()
    response.writableLength = 100
    stream.send('a', 1)
    expect([response.destroyed, dropped()]).toEqual([false, 0])
    response.writableLength = 101
    stream.send('a', 2)
    expect([response.destroyed, dropped()]).toEqual([true, 1])
    stream.send('a', 3)
    expect([response.written.length, dropped()]).toEqual([2, 1])
  })

  it('is not written to after its end', () => {
    const { response, stream } = scene()
    stream.end()
    stream.send('a', 1)
    expect([response.writableEnded, response.written]).toEqual([true, []])
  })
})
