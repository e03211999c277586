import { describe, expect, it } from 'vitest'
import {
  closing,
  controlFrame,
  FrameReader,
  OPCODE,
  textFrame,
} from '../../../src/stores/remote/frames.ts'

const LARGEST = 100_000

/** A reader and the messages that it has read. */
function reading(largest = LARGEST) {
  const heard: string[] = []
  const reader = new FrameReader(
    {
      text: (text) => heard.push(text),
      ping: (content) => heard.push(`ping ${content}`),
      pong: () => heard.push('pong'),
      close: (code, reason) => heard.push(`close ${code} ${reason}`),
    },
    largest,
  )
  return { heard, reader, read: (...bytes: readonly Buffer[]) => reader.read(Buffer.concat(bytes)) }
}

/** A frame as a server sends it: its first byte, and its length in as few bytes as possible. */
function frame(first: number, content: Buffer | string): Buffer {
  const body = Buffer.from(content)
  const { length } = body
  if (length < 126) return Buffer.concat([Buffer.from([first, length]), body])
  const header = Buffer.alloc(length < 65_536 ? 4 : 10)
  header[0] = first
  header[1] = length < 65_536 ? 126 : 127
  if (length < 65_536) header.writeUInt16BE(length, 2)
  else header.writeBigUInt64BE(BigInt(length), 2)
  return Buffer.concat([header, body])
}

const TEXT = 0x81
const TEXT_BEGINS = 0x01
const GOES_ON = 0x00
const ENDS = 0x80
const CLOSE = 0x88
const PING = 0x89

const refusedWith = (code: number) => expect.objectContaining({ code })

describe('a frame that a client writes', () => {
  const content = (bytes: Buffer, at: number) =>
    Buffer.from(bytes.subarray(at).map((byte, place) => byte ^ bytes[at - 4 + (place & 3)]!))

  it.each([
    [0, [0x81, 0x80]],
    [125, [0x81, 0x80 | 125]],
    [126, [0x81, 0x80 | 126, 0, 126]],
    [65_535, [0x81, 0x80 | 126, 255, 255]],
    [65_536, [0x81, 0x80 | 127, 0, 0, 0, 0, 0, 1, 0, 0]],
  ])('has its length in as few bytes as the standard requires: %i', (length, header) => {
    const bytes = textFrame('x'.repeat(length), 0x01020304)
    expect([...bytes.subarray(0, header.length)]).toEqual(header)
    expect(bytes).toHaveLength(header.length + 4 + length)
    expect(content(bytes, header.length + 4).toString()).toBe('x'.repeat(length))
  })

  it('has the kind and the content of a control frame', () => {
    const bytes = controlFrame(OPCODE.pong, Buffer.from('back'), 0x01020304)
    expect([...bytes.subarray(0, 2)]).toEqual([0x8a, 0x84])
    expect(content(bytes, 6).toString()).toBe('back')
  })

  it('closes with a code, and with as much of the reason as a control frame can contain', () => {
    expect([...closing(4003, 'ok')]).toEqual([0x0f, 0xa3, 0x6f, 0x6b])
    expect([...closing(1000, '')]).toEqual([0x03, 0xe8])
    expect(closing(1000, 'r'.repeat(123))).toHaveLength(125)
    expect(closing(1000, 'r'.repeat(124))).toHaveLength(125)
  })
})

describe('what a server sends in chunks', () => {
  /** How many times this copies bytes. */
  function copies(run: () => void): number {
    const { concat } = Buffer
    let count = 0
    Buffer.concat = (...given) => {
      count++
      return concat.apply(Buffer, given)
    }
    try {
      run()
    } finally {
      Buffer.concat = concat
    }
    return count
  }

  it('is not copied if each chunk is a whole frame', () => {
    const { heard, reader } = reading()
    const pieces = [frame(TEXT, 'one'), frame(TEXT, 'two'.repeat(100)), frame(PING, 'p')]
    const count = copies(() => {
      for (const piece of pieces) reader.read(piece)
    })
    expect(count).toBe(0)
    expect(heard).toHaveLength(3)
  })

  it.each([100, 1000, 90_000])('is joined once, when all %i bytes have arrived', (length) => {
    const { heard, reader } = reading()
    const bytes = frame(TEXT, 'x'.repeat(length))
    const step = Math.ceil(length / 50)
    const count = copies(() => {
      for (let at = 0; at < bytes.length; at += step) reader.read(bytes.subarray(at, at + step))
    })
    expect(heard).toEqual(['x'.repeat(length)])
    // One more time for the first bytes, which contain the length.
    expect(count).toBeLessThanOrEqual(3)
  })
})

describe('what a server sends', () => {
  it.each([0, 125, 126, 65_535, 65_536])('is a string of %i bytes', (length) => {
    const { heard, read } = reading()
    read(frame(TEXT, 'x'.repeat(length)), frame(TEXT, 'next'))
    expect(heard).toEqual(['x'.repeat(length), 'next'])
  })

  it('may be as large as agreed, and not a byte larger', () => {
    const { heard, read } = reading(200)
    read(frame(TEXT, 'x'.repeat(200)))
    expect(heard).toHaveLength(1)
    // Its header is enough to refuse it, before its content arrives.
    expect(() => read(Buffer.from([TEXT, 126, 0, 201]))).toThrowError(refusedWith(1009))
  })

  it('may be as large in fragments altogether, and then the count starts again', () => {
    const { heard, read } = reading(200)
    for (let message = 0; message < 3; message++) {
      read(frame(TEXT_BEGINS, 'x'.repeat(150)), frame(ENDS, 'y'.repeat(50)))
    }
    expect(heard).toEqual(Array(3).fill('x'.repeat(150) + 'y'.repeat(50)))
    read(frame(TEXT_BEGINS, 'x'.repeat(150)))
    expect(() => read(frame(ENDS, 'y'.repeat(51)))).toThrowError(refusedWith(1009))
  })

  it('is in at most 16384 fragments', () => {
    const begins = [frame(TEXT_BEGINS, 'a'), ...Array(16_382).fill(frame(GOES_ON, ''))]
    const { heard, read } = reading()
    read(...begins, frame(ENDS, 'z'), frame(TEXT, 'next'))
    expect(heard).toEqual(['az', 'next'])
    read(...begins, frame(GOES_ON, ''))
    expect(() => read(frame(ENDS, 'z'))).toThrowError(refusedWith(1008))
  })

  it('must not be a fragment without a message, or a new message within a fragmented one', () => {
    const { heard, read } = reading()
    read(frame(TEXT_BEGINS, ''), frame(ENDS, ''), frame(TEXT, 'whole'))
    expect(heard).toEqual(['', 'whole'])
    for (const first of [GOES_ON, ENDS]) {
      expect(() => reading().read(frame(first, 'a'))).toThrowError(refusedWith(1002))
    }
    for (const first of [TEXT, TEXT_BEGINS]) {
      const bytes = [frame(TEXT_BEGINS, 'a'), frame(first, 'b')]
      expect(() => reading().read(...bytes)).toThrowError(refusedWith(1002))
    }
  })

  it('must be valid UTF-8 as a whole', () => {
    const { heard, read } = reading()
    const bytes = Buffer.from('€')
    read(frame(TEXT_BEGINS, bytes.subarray(0, 1)), frame(ENDS, bytes.subarray(1)))
    expect(heard).toEqual(['€'])
    read(frame(TEXT_BEGINS, bytes.subarray(0, 1)))
    expect(() => read(frame(ENDS, 'a'))).toThrowError(refusedWith(1007))
  })

  it('is a ping of at most 125 bytes, in one frame', () => {
    const { heard, read } = reading()
    read(frame(PING, 'p'.repeat(125)))
    expect(heard).toEqual([`ping ${'p'.repeat(125)}`])
    expect(() => read(frame(PING, 'p'.repeat(126)))).toThrowError(refusedWith(1002))
    for (const first of [0x08, 0x09, 0x0a]) {
      expect(() => reading().read(frame(first, ''))).toThrowError(refusedWith(1002))
    }
  })

  it.each([0x40, 0x20, 0x10])('uses no extension: %i', (bit) => {
    expect(() => reading().read(frame(TEXT | bit, 'a'))).toThrowError(refusedWith(1002))
  })

  it('must not be masked, however short it is', () => {
    expect(() => reading().read(Buffer.from([TEXT, 0x80]))).toThrowError(refusedWith(1002))
  })

  it('closes with a code and a reason, with a code alone, or without either', () => {
    const { heard, read } = reading()
    read(frame(CLOSE, closing(4003, 'ok')), frame(CLOSE, closing(1001, '')), frame(CLOSE, ''))
    // One byte is not a complete code.
    read(frame(CLOSE, 'x'))
    expect(heard).toEqual(['close 4003 ok', 'close 1001 ', 'close 1005 ', 'close 1005 '])
  })
})
