import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  ByteReader,
  ByteWriter,
  decodeRecords,
  RecordEncoder,
} from '../../../../src/encoding/index.ts'
import type { Answer, ChangeSink } from '../../../../src/kernel/index.ts'

type Change = [keyof ChangeSink, ...unknown[]]

/** Records all changes. */
function recorder(changes: Change[]): ChangeSink {
  const keep =
    (name: keyof ChangeSink) =>
    (...rest: unknown[]) =>
      void changes.push([name, ...rest])
  return {
    granted: keep('granted'),
    capped: keep('capped'),
    ended: keep('ended'),
    claimed: keep('claimed'),
    updated: keep('updated'),
    released: keep('released'),
    answered: keep('answered'),
    tenure: keep('tenure'),
    remembered: keep('remembered'),
  }
}

const text = fc.oneof(fc.string(), fc.string({ unit: 'grapheme', maxLength: 80 }), fc.constant(''))
const revision = fc.oneof(fc.nat(), fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }))
const slot = fc.nat()
const time = fc.oneof(fc.double({ noNaN: true, min: 0, max: 4e12 }), fc.nat())
const span = fc.oneof(time, fc.constant(Infinity))
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })
const end = fc.record(
  {
    reason: fc.constantFrom('released', 'expired', 'revoked', 'broken'),
    by: text,
    why: text,
  },
  { requiredKeys: ['reason'] },
)
const mode = fc.constantFrom('exclusive', 'shared')
const claim = fc.record(
  {
    key: text,
    token: revision,
    lease: text,
    holder: text,
    mode,
    limit: fc.integer({ min: 1, max: 9 }),
    value: text,
    claimedAt: time,
    heldSince: time,
    until: span,
  },
  { requiredKeys: ['key', 'token', 'lease', 'holder', 'mode', 'claimedAt', 'until'] },
)
const ahead = fc.array(fc.record({ key: text, count: fc.nat(), first: claim }), { maxLength: 3 })
const answer = fc.oneof(
  fc.record({
    outcome: fc.constant('granted'),
    lease: text,
    revision,
    token: revision,
    holds: fc.boolean(),
    ahead,
  }),
  fc.record({
    outcome: fc.constant('claimed'),
    revision,
    token: revision,
    holds: fc.boolean(),
    ahead,
  }),
  fc.record({ outcome: fc.constant('busy'), revision, ahead }),
  fc.record({ revision }),
  fc.record({ revision, leases: fc.nat(), claims: fc.nat(), more: fc.boolean() }),
  fc.record({
    outcome: fc.constant('refused'),
    refusal: fc.record(
      { code: fc.constantFrom('lease-ended', 'limit-exceeded'), message: text, end },
      { requiredKeys: ['code', 'message'] },
    ),
  }),
) as fc.Arbitrary<Answer>

const labels = fc.dictionary(fc.oneof(text, fc.constant('__proto__')), text, {
  noNullPrototype: true,
})
const granted = fc.record({
  born: revision,
  at: time,
  holder: text,
  ttl: span,
  grace: time,
  endOfLife: span,
  parent: fc.integer({ min: -1, max: 1e6 }),
  labels: optional(labels),
})
const claimed = fc.record({
  at: time,
  key: text,
  token: revision,
  mode,
  limit: fc.nat(),
  value: optional(text),
  heldSince: time,
})
const tenure = fc.record({
  token: revision,
  holder: text,
  lease: text,
  heldSince: time,
  endedAt: time,
  end,
})
const record = fc.oneof(
  fc.tuple(fc.constant('granted'), revision, slot, granted),
  fc.tuple(fc.constant('capped'), revision, slot, time, time, end),
  fc.tuple(fc.constant('ended'), revision, slot, time, end),
  fc.tuple(fc.constant('claimed'), revision, slot, claimed),
  fc.tuple(fc.constant('updated'), revision, slot, time, text, revision, optional(text)),
  fc.tuple(fc.constant('released'), revision, slot, time, text, revision, end),
  fc.tuple(fc.constant('answered'), text, answer),
  fc.tuple(fc.constant('tenure'), text, tenure),
  fc.tuple(fc.constant('remembered'), text, end),
) as unknown as fc.Arbitrary<Change>

function apply(changeSink: ChangeSink, [name, ...rest]: Change): void {
  ;(changeSink[name] as (...args: unknown[]) => void)(...rest)
}

describe('the records of the log', () => {
  it('reads a string beside a known one as it was written', () => {
    const like = fc.oneof(text, fc.constantFrom('bench', 'bencj', 'benc', '\u00e9\u00e9', '\u00e9'))
    fc.assert(
      fc.property(like, like, (written, known) => {
        const bytes = new ByteWriter()
        bytes.string(written)
        bytes.integer(7)
        const reader = new ByteReader(bytes.view())
        expect(reader.stringLike(known)).toBe(written)
        expect(reader.integer()).toBe(7)
      }),
      { numRuns: 1000 },
    )
    expect(() => new ByteReader(Buffer.from([5, 98, 101])).stringLike('bench')).toThrow(RangeError)
  })

  it('are decoded as they were encoded', () => {
    fc.assert(
      fc.property(fc.array(record, { maxLength: 12 }), (records) => {
        const encoder = new RecordEncoder()
        for (const each of records) apply(encoder, each)
        const changes: Change[] = []
        expect(decodeRecords(encoder.take(), recorder(changes), () => true)).toBe(records.length)
        expect(changes).toEqual(records)
      }),
      { numRuns: 1500 },
    )
  })

  it('are skipped completely if they are not wanted', () => {
    fc.assert(
      fc.property(fc.array(record, { maxLength: 12 }), fc.nat(), (records, least) => {
        const encoder = new RecordEncoder()
        for (const each of records) apply(encoder, each)
        const changes: Change[] = []
        decodeRecords(encoder.take(), recorder(changes), (_, slot) => slot >= least)
        const about = (each: Change) => !['answered', 'tenure', 'remembered'].includes(each[0])
        expect(changes).toEqual(
          records.filter((each) => !about(each) || (each[2] as number) >= least),
        )
      }),
    )
  })

  it('keep the end of a life on the time of the log', () => {
    const encoder = new RecordEncoder()
    encoder.shift = 1000.5
    encoder.capped(1, 0, 5000, 9000, { reason: 'broken' })
    const changes: Change[] = []
    decodeRecords(encoder.take(), recorder(changes), () => true)
    expect(changes).toEqual([['capped', 1, 0, 5000, 7999.5, { reason: 'broken' }]])
  })

  it('contain an end once if many leases share it', () => {
    const encoder = new RecordEncoder()
    const why = 'x'.repeat(200)
    const shared = { reason: 'revoked', why } as const
    for (let slot = 0; slot < 100; slot++) encoder.ended(7, slot, 0, shared)
    expect(encoder.length).toBeLessThan(100 * 14 + 220)
    const first = encoder.take()
    encoder.ended(8, 0, 0, shared)
    for (const bytes of [first, encoder.take()]) {
      const changes: Change[] = []
      decodeRecords(bytes, recorder(changes), () => true)
      for (const each of changes) expect(each[4]).toEqual(shared)
    }
  })

  it('are refused if the bytes end too early or are invalid', () => {
    const encoder = new RecordEncoder()
    encoder.remembered('lease', { reason: 'expired', why: 'because' })
    const bytes = Buffer.from(encoder.take())
    for (let length = 1; length < bytes.length; length++) {
      const cut = bytes.subarray(0, length)
      expect(() => decodeRecords(cut, recorder([]), () => true)).toThrow(RangeError)
    }
    expect(() => decodeRecords(Buffer.from([200]), recorder([]), () => true)).toThrow('kind 200')
  })
})

describe('numbers', () => {
  it('are decoded as they were encoded', () => {
    const numbers = fc.oneof(fc.double(), fc.integer(), fc.maxSafeInteger(), fc.constant(-0))
    fc.assert(
      fc.property(fc.array(fc.tuple(numbers, revision, text)), (values) => {
        const writer = new ByteWriter(1)
        for (const [number, integer, text] of values) {
          writer.number(number)
          writer.integer(integer)
          writer.string(text)
        }
        const reader = new ByteReader(writer.view())
        for (const [number, integer, text] of values) {
          expect(reader.number()).toBe(number)
          expect(reader.integer()).toBe(integer)
          expect(reader.string()).toBe(text)
        }
        expect(reader.done).toBe(true)
      }),
    )
  })
})
