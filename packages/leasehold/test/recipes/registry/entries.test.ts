import { describe, expect, it } from 'vitest'
import { Leasehold } from '../../../src/index.ts'
import {
  describe as describeInstance,
  descriptionJson,
  parseDescription,
} from '../../../src/recipes/registry/instance/description.ts'
import { entryOf, updatedEntry } from '../../../src/recipes/registry/instance/entry.ts'
import {
  type Entry,
  type Health,
  healthJson,
  healthKey,
  instanceOf,
  newestHealth,
  partsOfKey,
  statusOf,
  wantedBy,
} from '../../../src/recipes/registry/instance/instance.ts'
import { testStore } from '../../../src/testing/index.ts'

const NAMES = Array.from({ length: 64 }, (_, at) => `n${at}`)
const record = (length: number, value: string) =>
  Object.fromEntries(NAMES.slice(0, length).map((name) => [name, value]))

/** Every part of a description at its maximum size. */
const LARGEST = {
  address: 'a'.repeat(512),
  endpoints: { ...record(10, 'e'.repeat(512)), empty: '' },
  capabilities: NAMES,
  tags: ['t'.repeat(128)],
  metadata: record(5, 'm'.repeat(1024)),
  weight: 1e6,
  zone: 'z'.repeat(128),
  node: 'n'.repeat(128),
  report: { status: 'warning', note: 'r'.repeat(256), count: Number.MAX_SAFE_INTEGER },
  maintenance: 'w'.repeat(256),
  load: 1e15,
}

const SMALLEST = {
  endpoints: {},
  capabilities: [],
  tags: [],
  metadata: {},
  weight: 1,
}

describe('an entry', () => {
  it('is parsed as written, with all fields or none', () => {
    expect(parseDescription(JSON.stringify(LARGEST))).toEqual(LARGEST)
    expect(parseDescription('{}')).toEqual(SMALLEST)
    const report = { status: 'passing', note: '', count: 0 }
    const least = { ...SMALLEST, weight: 0, load: 0, maintenance: '', report }
    expect(parseDescription(JSON.stringify(least))).toEqual(least)
  })

  it.each([
    ['address', 'a'.repeat(513)],
    ['address', ''],
    ['endpoints', { a: 'e'.repeat(513) }],
    ['endpoints', { ['a'.repeat(129)]: 'e' }],
    ['capabilities', [...NAMES, 'one more']],
    ['tags', ['t'.repeat(129)]],
    ['metadata', { a: 'm'.repeat(1025) }],
    ['weight', 1e6 + 1],
    ['weight', -1],
    ['zone', 'z'.repeat(129)],
    ['zone', ''],
    ['node', 'n'.repeat(129)],
    ['node', 'a/b'],
    ['report', { status: 'fine', count: 1 }],
    ['report', { status: 'passing', count: -1 }],
    ['report', { status: 'passing' }],
    ['report', { status: 'passing', count: 1, note: 'r'.repeat(257) }],
    ['report', { status: 'passing', count: 1, note: 5 }],
    ['maintenance', 'w'.repeat(257)],
    ['maintenance', true],
    ['load', -1],
    ['load', 1e15 + 1],
    ['check', {}],
  ])('is nothing with a wrong %s', (name, value) => {
    expect(parseDescription(JSON.stringify({ [name]: value }))).toBeUndefined()
  })

  it.each([
    [{ address: '' }, {}, /^address /],
    [{ endpoints: 5 }, {}, /^endpoints /],
    [{ capabilities: 5 }, {}, /^capabilities /],
    [{ tags: 5 }, {}, /^tags /],
    [{ metadata: 5 }, {}, /^metadata /],
    [{ weight: -1 }, {}, /^weight /],
    [{ zone: 5 }, {}, /^zone /],
    [{}, { node: '' }, /^node /],
    [{}, { maintenance: 5 }, /^maintenance /],
    [{}, { load: -1 }, /^load /],
    [{}, { report: { status: 'passing', note: 5, count: 1 } }, /^note /],
    [{}, { report: { status: 'passing', count: -1 } }, /^count /],
    [5, {}, /^the registration /],
  ])('is refused by name: %j %j', (spec, condition, message) => {
    expect(() => describeInstance(spec as never, condition as never)).toThrowError(message)
  })

  it('is undefined if it is missing or larger than 32 KiB', () => {
    expect(parseDescription(undefined)).toBeUndefined()
    const padded = (length: number) => '{}'.padEnd(length)
    expect(parseDescription(padded(32 * 1024))).toEqual(SMALLEST)
    expect(parseDescription(padded(32 * 1024 + 1))).toBeUndefined()
  })

  it('is at most 32 KiB when it is written, in bytes', () => {
    const described = (length: number) =>
      ({ ...SMALLEST, metadata: { a: '€'.repeat(1000).padEnd(length) } }) as never
    // The euro sign has three bytes.
    const most = 32 * 1024 - JSON.stringify({ ...SMALLEST, metadata: { a: '' } }).length - 2000
    expect(descriptionJson(described(most))).toContain('€€')
    expect(() => descriptionJson(described(most + 1))).toThrowError(/the limit is 32768/)
  })
})

describe('an entry whose lease somebody else renews', () => {
  it('has the key, the value and the labels of a registration', async () => {
    const { store, clock } = testStore()
    const { registry } = await Leasehold.open(store, { clock })
    const spec = { address: 'a:1', check: { tcp: true } } as const
    const { key, value, labels } = registry.entry('s', 'i', spec)
    expect([key, labels]).toEqual(['services/s/i', { service: 's', instance: 'i' }])
    const me = await registry.register('s', { id: 'other', ...spec })
    expect(JSON.parse(value)).toEqual(JSON.parse(JSON.stringify(me.description)))
    expect(() => entryOf('a/b', 'i', {})).toThrowError(/^service /)
    expect(() => entryOf('s', '', {})).toThrowError(/^id /)
    expect(() => entryOf('s', 'i', { weight: -1 })).toThrowError(/^weight /)
  })

  it('takes an update and keeps the rest', () => {
    const { value } = entryOf('s', 'i', { address: 'a:1', tags: ['t'] })
    const first = updatedEntry(value, { status: 'warning', note: 'slow', load: 3 })
    const read = (text: string) => parseDescription(text)!
    expect(read(first)).toMatchObject({
      ...{ address: 'a:1', tags: ['t'], load: 3 },
      report: { status: 'warning', note: 'slow', count: 1 },
    })
    const second = updatedEntry(first, { maintenance: 'new disks' })
    expect(read(second)).toEqual({ ...read(first), maintenance: 'new disks' })
    const third = updatedEntry(second, { status: 'passing' })
    expect(read(third)).toMatchObject({ maintenance: 'new disks', load: 3 })
    expect(read(third).report).toEqual({ status: 'passing', count: 2 })
    expect(read(updatedEntry(third, { maintenance: false })).maintenance).toBeUndefined()
  })

  it.each([
    ['no entry', undefined, {}],
    ['what is none', 'not json', {}],
    ['an invalid status', '{}', { status: 'fine' }],
    ['a note that is too long', '{}', { status: 'passing', note: 'x'.repeat(257) }],
    ['a negative load', '{}', { load: -1 }],
  ])('is refused with %s', (_with, value, events) => {
    expect(() => updatedEntry(value, events as never)).toThrowError(
      expect.objectContaining({ code: 'invalid-argument' }),
    )
  })

  it('is updated through the registry too', async () => {
    const { store, clock } = testStore()
    const { registry } = await Leasehold.open(store, { clock })
    const { value } = registry.entry('s', 'i', {})
    expect(registry.amended(value, { load: 2 })).toBe(updatedEntry(value, { load: 2 }))
  })
})

describe('the key of an instance', () => {
  it('has three parts, none of them empty', () => {
    expect(partsOfKey('services/s/i')).toEqual({ service: 's', id: 'i' })
    for (const key of ['services/s', 'services/s/', 'services//i', 'services/s/i/j', 's']) {
      expect(partsOfKey(key)).toBeUndefined()
    }
    expect(healthKey('s', 'i')).toBe('health/s/i')
  })
})

describe('a health result', () => {
  const entry = (value: string | undefined) => ({ value }) as Entry
  const health = { status: 'warning', note: 'slow', of: 5 } as const

  it('is parsed as written, and the newest counts', () => {
    const old = entry(healthJson({ ...health, status: 'critical' }))
    expect(newestHealth([old, entry(healthJson(health))])).toEqual(health)
    const longest = { ...health, note: 'n'.repeat(256) }
    expect(newestHealth([entry(healthJson(longest))])).toEqual(longest)
    expect(newestHealth([entry(healthJson({ ...health, note: '' }))])?.note).toBe('')
  })

  it('has a printable note of one line, whatever the input', () => {
    const noted = (note: string) => newestHealth([entry(healthJson({ ...health, note }))])?.note
    expect(noted('a\r\n\tb\u0000c')).toBe('a b c')
    expect(noted('n'.repeat(300))).toBe('n'.repeat(256))
    // Half of a surrogate pair is not a character.
    expect(noted(`${'n'.repeat(255)}😀`)).toBe(`${'n'.repeat(255)}�`)
  })

  it.each([
    ['nothing', undefined],
    ['no JSON', 'x'],
    ['no object', '5'],
    ['a wrong status', '{"status":"fine","note":"","of":1}'],
    ['a wrong note', '{"status":"passing","note":5,"of":1}'],
    ['no token', '{"status":"passing","note":""}'],
    ['a wrong token', '{"status":"passing","note":"","of":"1"}'],
    ['too much', `{"status":"passing","note":"","of":1}${' '.repeat(1024)}`],
  ])('is nothing if it is %s', (_what, value) => {
    expect(newestHealth([entry(value)])).toBeUndefined()
    expect(newestHealth([])).toBeUndefined()
  })

  it('may be 1024 characters long', () => {
    const text = '{"status":"passing","note":"","of":1}'
    expect(newestHealth([entry(text.padEnd(1024))])).toBeDefined()
    expect(newestHealth([entry(text.padEnd(1025))])).toBeUndefined()
  })
})

describe('an instance', () => {
  const entry = {
    ...{ key: 'services/s/i', token: 5, lease: 'l', holder: 'h', claimedAt: 7 },
    value: JSON.stringify({ ...LARGEST, maintenance: undefined }),
  }
  const failing: Health = { status: 'critical', note: 'no answer', of: 5 }

  it('combines its claim and its health', () => {
    const { report: _, maintenance: __, ...shown } = LARGEST
    expect(instanceOf(entry, failing)).toEqual({
      ...shown,
      ...{ service: 's', id: 'i', status: 'critical', note: 'no answer' },
      ...{ holder: 'h', lease: 'l', token: 5, since: 7 },
    })
    // Checks of another registration do not count.
    expect(instanceOf(entry, { ...failing, of: 4 })).toMatchObject({
      ...{ status: 'warning', note: 'r'.repeat(256) },
    })
    expect(instanceOf({ ...entry, key: 'services/s/i/j' }, failing)).toBeUndefined()
    expect(instanceOf({ ...entry, value: 'x' }, failing)).toBeUndefined()
  })

  it.each([
    [undefined, undefined, undefined, 'passing'],
    ['passing', undefined, 'warning', 'warning'],
    ['passing', undefined, 'critical', 'critical'],
    ['warning', 'passing', undefined, 'warning'],
    ['warning', 'critical', undefined, 'critical'],
    ['critical', 'warning', undefined, 'critical'],
    ['critical', 'passing', 'passing', 'critical'],
    ['passing', 'passing', 'critical', 'passing'],
    ['passing', 'warning', undefined, 'warning'],
  ] as const)(
    'that reports %s, with the check result %s and the initial status %s, is %s',
    (own, checked, initially, status) => {
      const report = own && { status: own, note: 'own', count: 1 }
      const check = initially && { initially }
      const health = checked && { status: checked, note: 'checked', of: 1 }
      const found = statusOf({ ...SMALLEST, report, check } as never, health)
      expect(found.status).toBe(status)
      const isOwn = own === status
      expect(found.note).toBe(isOwn ? 'own' : status === checked ? 'checked' : undefined)
    },
  )

  it('in maintenance has that status, with the reason if given', () => {
    const inMaintenance = (maintenance: string) =>
      statusOf({ ...SMALLEST, maintenance } as never, failing)
    expect(inMaintenance('disks')).toEqual({ status: 'maintenance', note: 'disks' })
    expect(inMaintenance('')).toEqual({ status: 'maintenance', note: undefined })
  })

  it('has no note if none was given', () => {
    const report = { status: 'passing', note: '', count: 1 } as const
    expect(statusOf({ ...SMALLEST, report } as never, undefined).note).toBeUndefined()
    const noteless = { ...failing, note: '' }
    expect(statusOf(SMALLEST as never, noteless).note).toBeUndefined()
  })
})

describe('a filter', () => {
  it.each([
    [5, /^the filter /],
    [{ zone: 5 }, /^zone /],
    [{ capability: 5 }, /^capability /],
    [{ capability: ['a', 5] }, /^capability /],
    [{ tags: {} }, /^tags /],
    [{ status: 'fine' }, /^status /],
    [{ status: 5 }, /^status /],
    [{ status: ['passing', 'fine'] }, /^status /],
  ])('is refused: %j', (filter, message) => {
    expect(() => wantedBy(filter as never)).toThrowError(message)
  })

  it('requires everything that it names', () => {
    const instance = {
      ...SMALLEST,
      ...{ capabilities: ['a', 'b'], tags: ['t', 'u'], zone: 'z', status: 'lapsed' },
    } as never
    const wants = (filter: object) => {
      const { kind, status } = wantedBy(filter)
      return kind(instance) && status(instance)
    }
    expect(wants({ status: 'any' })).toBe(true)
    expect(wants({})).toBe(false)
    expect(wants({ status: 'lapsed' })).toBe(true)
    expect(wants({ status: ['critical', 'lapsed'] })).toBe(true)
    expect(wants({ status: ['critical', 'maintenance'] })).toBe(false)
    const any = { status: 'any' }
    expect(wants({ ...any, capability: ['a', 'b'], tags: ['u', 't'], zone: 'z' })).toBe(true)
    expect(wants({ ...any, capability: 'c' })).toBe(false)
    expect(wants({ ...any, capability: ['a', 'c'] })).toBe(false)
    expect(wants({ ...any, tags: ['t', 'v'] })).toBe(false)
    expect(wants({ ...any, zone: 'y' })).toBe(false)
  })
})
