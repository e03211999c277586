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
} from '../../src/stores/file/frame.ts'

const FIELDS = { kind: KIND.records, last: true, time: 12.5, sequence: 2 ** 40, index: 3 }
const SEED = 12_345

/** Payloads whose sectors are often of one byte throughout, zeros above all. */
const payloads = fc
  .array(fc.tuple(fc.constantFrom(0, 0, 1, 2, 255), fc.integer({ min: 1, max: 2000 })), {
    maxLength: 30,
  })
  .map((runs) => Buffer.concat(runs.map(([byte, length]) => Buffer.alloc(length, byte))))
  .filter((payload) => payload.length <= PAYLOAD_MAX)

describe('a frame', () => {
  it('comes back as it was, and has no sector of zeros', () => {
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

  it('of another store is none of ours', () => {
    const bytes = Buffer.alloc(64)
    putFrame(bytes, 0, 0, FIELDS, Buffer.from('hello'), SEED)
    expect(readHeader(bytes, 0, SEED + 1)).toBe('bad')
  })
})
