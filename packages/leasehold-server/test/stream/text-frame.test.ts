import { TestClock } from 'leasehold/testing'
import { describe, expect, it } from 'vitest'
import { FrameReader } from '../../../leasehold/src/stores/remote/frames.ts'
import { DEFAULT_STREAM } from '../../src/stream/options.ts'
import { Outbox } from '../../src/stream/outbox.ts'
import { textFrame } from '../../src/stream/text-frame.ts'

/** What a client reads from the bytes of a server. */
function received(...frames: Buffer[]): string[] {
  const texts: string[] = []
  const events = { text: (text: string) => texts.push(text), ping() {}, pong() {}, close() {} }
  const reader = new FrameReader(events, 2 << 20)
  for (const frame of frames) reader.read(frame)
  return texts
}

describe('a text frame', () => {
  it.each([0, 1, 125, 126, 127, 0xffff, 0x10000, 1 << 20])('carries %i bytes', (length) => {
    const text = 'x'.repeat(length)
    expect(received(textFrame(text), textFrame('[next]'))).toEqual([text, '[next]'])
  })

  it('counts bytes, not characters', () => {
    const text = 'ключ'.repeat(20)
    expect(received(textFrame(text))).toEqual([text])
  })
})

describe('the outbox of an open connection', () => {
  function wire(readyState: number) {
    const clock = new TestClock()
    const writes: Buffer[] = []
    const sent: string[] = []
    const transport = { write: (frame: Buffer) => writes.push(frame) }
    const socket = {
      bufferedAmount: 0,
      OPEN: 1,
      readyState,
      send: (text: string) => sent.push(text),
    }
    const around = { clock, stats: {}, options: DEFAULT_STREAM }
    const events = { tooSlow: () => {}, sent: () => {}, failed: () => {} }
    const out = new Outbox(socket as never, transport as never, around as never, events)
    return { clock, writes, sent, out }
  }

  it('writes header and messages at once', async () => {
    const { out, clock, writes, sent } = wire(1)
    out.push('[1]')
    out.push('[2]')
    await clock.advance(0)
    expect(writes).toHaveLength(1)
    expect([received(writes[0]!), sent]).toEqual([['[[1],[2]]'], []])
  })

  it('writes nothing behind a close frame', async () => {
    const { out, clock, writes, sent } = wire(2)
    out.push('[1]')
    await clock.advance(0)
    expect([writes, sent]).toEqual([[], ['[[1]]']])
  })
})
