import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  extentOf,
  groupOf,
  HEADER_BYTES,
  isTorn,
  isZero,
  KIND,
  PAYLOAD_MAX,
  putFrame,
  readHeader,
  readPayload,
  SECTOR_BYTES,
} from '../../../../src/stores/file/log/frame.ts'

const FIELDS = { kind: KIND.records, last: true, time: 12.5, sequence: 2 ** 40, index: 3 }
const SEED = 12_345

/** Payloads with many sectors of one repeated byte, mostly zeros. */
const payloads = fc
  .array(fc.tuple(fc.constantFrom(0, 0, 1, 2, 255), fc.integer({ min: 1, max: 2000 })), {
    maxLength: 30,
  })
  .map((runs) => Buffer.concat(runs.map(([byte, length]) => Buffer.alloc(length, byte))))
  .filter((payload) => payload.length <= PAYLOAD_MAX)

describe('a frame', () => {
  it('is read as it was written, and has no sector of zeros', () => {
    fc.assert(
      fc.property(payloads, fc.nat(40), (payload, cell) => {
        const position = cell * 32
        const bytes = Buffer.alloc(position + extentOf(payload.length), 0xee)
        const extent = putFrame(bytes, position, position, FIELDS, payload, SEED)
        expect(extent).toBe(extentOf(payload.length))
        const header = readHeader(bytes, position, SEED)
        if (header === 'zero' || header === 'bad') throw new Error(header)
        expect(header).toMatchObject(FIELDS)
        expect(groupOf(header)).toBe(2 ** 40 - 3)
        expect(readPayload(bytes, position, header, SEED)).toEqual(payload)
        expect(isTorn(bytes, position, position, header)).toBe(false)
        const end = position + HEADER_BYTES + payload.length
        for (let at = position; at < end; at = (Math.floor(at / SECTOR_BYTES) + 1) * SECTOR_BYTES) {
          const to = Math.min((Math.floor(at / SECTOR_BYTES) + 1) * SECTOR_BYTES, end)
          expect(isZero(bytes, at, to)).toBe(false)
        }
      }),
    )
  })

  it.each([0, 32, 256, 480])('masks a sector of zeros that starts at byte %i', (position) => {
    const payload = Buffer.alloc(3 * SECTOR_BYTES, 7)
    const sector = SECTOR_BYTES - position - HEADER_BYTES
    payload.fill(0, Math.max(sector, 0), sector + SECTOR_BYTES)
    const bytes = Buffer.alloc(position + extentOf(payload.length), 0xee)
    putFrame(bytes, position, position, FIELDS, payload, SEED)
    expect(isZero(bytes, SECTOR_BYTES, 2 * SECTOR_BYTES)).toBe(false)
  })

  it('is known to be torn when one of its sectors is missing', () => {
    fc.assert(
      fc.property(payloads, fc.nat(40), fc.nat(), (payload, cell, which) => {
        const position = cell * 32
        const bytes = Buffer.alloc(position + extentOf(payload.length))
        putFrame(bytes, position, position, FIELDS, payload, SEED)
        const first = Math.floor(position / SECTOR_BYTES) + 1
        const count = Math.ceil(bytes.length / SECTOR_BYTES) - first
        fc.pre(count > 0)
        const at = (first + (which % count)) * SECTOR_BYTES
        bytes.fill(0, at, Math.min(at + SECTOR_BYTES, bytes.length))
        const header = readHeader(bytes, position, SEED)
        if (header === 'zero' || header === 'bad') throw new Error(header)
        expect(readPayload(bytes, position, header, SEED)).toBe(undefined)
        expect(isTorn(bytes, position, position, header)).toBe(true)
      }),
    )
  })

  it('of another store is not accepted', () => {
    const bytes = Buffer.alloc(64)
    putFrame(bytes, 0, 0, FIELDS, Buffer.from('hello'), SEED)
    expect(readHeader(bytes, 0, SEED + 1)).toBe('bad')
  })
})

describe('the position of a frame', () => {
  const PAYLOAD = Buffer.from('hello')
  const framed = (payload: Buffer, fields = FIELDS) => {
    const bytes = Buffer.alloc(extentOf(payload.length))
    putFrame(bytes, 0, 0, fields, payload, SEED)
    return bytes
  }
  const headerOf = (bytes: Buffer) => {
    const header = readHeader(bytes, 0, SEED)
    if (header === 'zero' || header === 'bad') throw new Error(header)
    return header
  }

  it('may contain nothing, no header, or half of one', () => {
    expect(readHeader(Buffer.alloc(HEADER_BYTES), 0, SEED)).toBe('zero')
    const [almost, bytes] = [Buffer.alloc(HEADER_BYTES), framed(Buffer.alloc(0))]
    almost[HEADER_BYTES - 1] = 1
    expect(readHeader(almost, 0, SEED)).toBe('bad')
    expect(headerOf(bytes).length).toBe(0)
    expect(readHeader(bytes.subarray(0, HEADER_BYTES - 1), 0, SEED)).toBe('bad')
  })

  it.each([0, 3, 7, 8, 21, 22, 27, 28, 31])('byte %i of the header may be wrong', (at) => {
    const bytes = framed(PAYLOAD)
    bytes[at]! ^= 1
    expect(readHeader(bytes, 0, SEED)).toBe('bad')
  })

  it('the payload may end with the file, and may not be cut off', () => {
    const bytes = framed(PAYLOAD)
    const end = HEADER_BYTES + PAYLOAD.length
    const header = headerOf(bytes)
    expect(readPayload(bytes.subarray(0, end), 0, header, SEED)).toEqual(PAYLOAD)
    expect(readPayload(bytes.subarray(0, end - 1), 0, header, SEED)).toBeUndefined()
  })

  it('between the payload and the next frame are only zeros', () => {
    const bytes = framed(PAYLOAD)
    bytes[bytes.length - 1] = 1
    expect(readPayload(bytes, 0, headerOf(bytes), SEED)).toBeUndefined()
  })

  it('a position in a group that is too high for its field becomes the highest that fits', () => {
    expect(headerOf(framed(PAYLOAD, { ...FIELDS, index: 65_535 })).index).toBe(65_535)
    expect(headerOf(framed(PAYLOAD, { ...FIELDS, index: 70_000 })).index).toBe(65_535)
  })

  it('the end of a group is recognised', () => {
    expect(headerOf(framed(PAYLOAD, { ...FIELDS, last: false }))).toMatchObject({
      last: false,
      kind: KIND.records,
    })
  })

  it('a frame is torn if it has a sector of zeros', () => {
    const bytes = framed(Buffer.alloc(3 * SECTOR_BYTES, 1))
    const header = headerOf(bytes)
    expect(isTorn(bytes.subarray(0, 2 * SECTOR_BYTES), 0, 0, header)).toBe(false)
    bytes.fill(0, SECTOR_BYTES)
    expect(isTorn(bytes.subarray(0, 2 * SECTOR_BYTES), 0, 0, header)).toBe(true)
    expect(isTorn(bytes.subarray(0, SECTOR_BYTES), 0, 0, header)).toBe(false)
  })
})

describe('a run of zeros', () => {
  const LONG = 3 * 64 * 1024 + 5

  it('has no other byte from its first to its last', () => {
    const bytes = Buffer.alloc(LONG)
    expect(isZero(bytes, 0, LONG)).toBe(true)
    for (const at of [0, 64 * 1024 - 1, 64 * 1024, LONG - 1]) {
      bytes[at] = 1
      expect(isZero(bytes, 0, LONG), `${at}`).toBe(false)
      expect([isZero(bytes, 0, at), isZero(bytes, at + 1, LONG)]).toEqual([true, true])
      bytes[at] = 0
    }
  })
})
