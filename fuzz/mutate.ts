import type { Random } from './random.ts'
import type { Text } from './text.ts'

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json }

/** Values that programs often misinterpret. */
const HOSTILE: readonly Json[] = [
  null,
  true,
  false,
  0,
  -1,
  1,
  0.5,
  2 ** 31,
  2 ** 53,
  -(2 ** 53),
  1e308,
  '',
  ' ',
  '0',
  '1.1',
  '99999999999.1',
  '__proto__',
  'constructor',
  'toString',
  'leasehold/',
  'leasehold/tokens/x',
  '../../etc/passwd',
  '\u0000',
  '\ud800',
  '\u202e',
  'é'.repeat(300),
  [],
  [[]],
  [null],
  {},
  { toString: 1 },
  { toJSON: 1, valueOf: null },
  { length: -1 },
  JSON.parse('{"__proto__":{"a":1}}'),
  JSON.parse('{"then":1}'),
  { key: {} },
]

export function hostile(random: Random): Json {
  if (random.oneIn(12)) return 'x'.repeat(random.size(100_000))
  if (random.oneIn(12)) return random.below(1000)
  return structuredClone(random.pick(HOSTILE))
}

/** A hostile value as a string. */
export function hostileText(random: Random): string {
  const value = hostile(random)
  return typeof value === 'string' ? value : JSON.stringify(value)
}

/** Changes a value in one place. `like` makes a value that fits the place. */
export function mutateJson(value: Json, random: Random, like: () => Json): Json {
  if (random.oneIn(6)) return random.oneIn(2) ? hostile(random) : like()
  if (Array.isArray(value) && value.length > 0) return mutateArray(value, random, like)
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return mutateObject(value, random, like)
  }
  if (typeof value === 'number') return mutateNumber(value, random)
  if (typeof value === 'string' && random.oneIn(2)) return mutateString(value, random)
  return random.oneIn(2) ? hostile(random) : like()
}

function mutateArray(value: Json[], random: Random, like: () => Json): Json[] {
  const at = random.below(value.length)
  switch (random.below(8)) {
    case 0:
      return value.toSpliced(at, 1)
    case 1:
      return value.toSpliced(at, 0, random.oneIn(2) ? hostile(random) : like())
    case 2:
      return value.toSpliced(at, 0, ...Array.from({ length: random.size(300) }, () => value[at]!))
    case 3:
      return value.slice(0, at)
    default:
      return value.with(at, mutateJson(value[at]!, random, like))
  }
}

function mutateObject(
  value: { [name: string]: Json },
  random: Random,
  like: () => Json,
): { [name: string]: Json } {
  const names = Object.keys(value)
  const entries = Object.entries(value)
  const at = random.below(Math.max(1, names.length))
  switch (random.below(6)) {
    case 0:
      return Object.fromEntries(entries.toSpliced(at, 1))
    case 1:
      return Object.fromEntries([...entries, [hostileText(random), hostile(random)]])
    case 2: {
      const many = Array.from(
        { length: random.size(500) },
        (_, index) => [`n${index}`, 'v'] as const,
      )
      return Object.fromEntries([...entries, ...many])
    }
    default: {
      if (names.length === 0) return { [random.pick(NAMES)]: hostile(random) }
      const [name, inner] = entries[at]!
      return Object.fromEntries(entries.with(at, [name, mutateJson(inner, random, like)]))
    }
  }
}

const NAMES = ['key', 'prefix', 'lease', 'ttl', 'limit', 'after', 'claims', 'labels', 'value']

function mutateNumber(value: number, random: Random): Json {
  return random.pick([value + 1, value - 1, -value, value * 2, value + 0.5, value * 1e9, 0, null])
}

/** Changes characters; the result may break the grammar. */
export function mutateString(text: string, random: Random): string {
  const at = random.below(text.length + 1)
  const end = Math.min(text.length, at + random.size(16))
  switch (random.below(6)) {
    case 0:
      return text.slice(0, at) + text.slice(end)
    case 1:
      return text.slice(0, at) + random.pick(PIECES) + text.slice(at)
    case 2:
      return text.slice(0, end) + text.slice(at)
    case 3:
      return text.slice(0, at)
    case 4:
      return text.slice(0, at) + text.slice(at, end).repeat(random.size(1000)) + text.slice(end)
    default:
      return text.slice(0, at) + String.fromCharCode(random.below(0x2000)) + text.slice(at + 1)
  }
}

const PIECES = [
  '[',
  ']',
  '{',
  '}',
  '"',
  ',',
  ':',
  '\\',
  '\\u0000',
  '1e999',
  '-0',
  'null',
  '%00',
  '%',
  '/',
  '..',
  '\r\n',
  '\u0000',
  '😀',
]

export function mutateBytes(bytes: Buffer, random: Random): Buffer {
  const copy = Buffer.from(bytes)
  const at = random.below(copy.length + 1)
  const end = Math.min(copy.length, at + random.size(64))
  switch (random.below(7)) {
    case 0:
      return Buffer.concat([copy.subarray(0, at), copy.subarray(end)])
    case 1:
      return Buffer.concat([copy.subarray(0, end), copy.subarray(at)])
    case 2:
      copy.fill(0, at, end)
      return copy
    case 3:
      copy.fill(0xff, at, end)
      return copy
    case 4:
      if (at < copy.length) copy[at] = random.below(256)
      return copy
    case 5:
      return Buffer.concat([
        copy.subarray(0, at),
        Buffer.from(Array.from({ length: random.size(16) }, () => random.below(256))),
        copy.subarray(at),
      ])
    default:
      if (at < copy.length) copy[at] = copy[at]! ^ (1 << random.below(8))
      return copy
  }
}

/** Makes a string huge, deep or repeated, which is slow for parsers and loops. */
export function amplify(text: string, random: Random): Text {
  const times = random.size(20_000)
  switch (random.below(5)) {
    case 0:
      return '['.repeat(times) + text + ']'.repeat(times)
    case 1:
      return `[${Array(Math.max(1, Math.min(times, 16_384)))
        .fill(text.slice(1, -1) || '[]')
        .join(',')
        .slice(0, 4 << 20)}]`
    case 2:
      return { before: '[', repeat: '[],', times: times * 200, after: '[]]' }
    case 3:
      return { before: `[[1,"read",{"key":"`, repeat: 'x', times: times * 100, after: '"}]]' }
    default:
      return `[[1,"tie",${'['.repeat(times)}${']'.repeat(times)}]]`
  }
}
