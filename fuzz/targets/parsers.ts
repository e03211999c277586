import {
  hostile,
  hostileText,
  type Json,
  mutateBytes,
  mutateJson,
  mutateString,
} from '../mutate.ts'
import type { Random } from '../random.ts'
import type { Target } from '../target.ts'
import type { Text } from '../text.ts'
import { ChildRunner } from './files.ts'

const TEXT_PARSERS = [
  'hello',
  'requests',
  'config-file',
  'config-flags',
  'duration',
  'right',
  'web-socket',
] as const

/** `text` is base64 for the parsers of bytes. */
export interface ParserInput {
  readonly parser: (typeof TEXT_PARSERS)[number] | 'records'
  readonly text: Text
}

/** The parsers of input from outside: hello, requests, configuration, rights, durations. */
export const parsersTarget: Target<ParserInput> = {
  name: 'parsers',
  start: (coverage) => ChildRunner.start('parsers', coverage),
  generate: (random) => {
    const parser = random.pick(TEXT_PARSERS)
    return { parser, text: example(parser, random) }
  },
  mutate,
}

/** The parser of the records in the file store's log, without the frames around them. */
export const recordsTarget: Target<ParserInput> = {
  name: 'records',
  start: (coverage) => ChildRunner.start('parsers', coverage),
  generate: (random) => {
    const bytes = Array.from({ length: 1 + random.size(200) }, () =>
      random.pick([1, 2, 3, 4, 5, 6, 7, 8, 9, 0, random.below(256)]),
    )
    return { parser: 'records', text: Buffer.from(bytes).toString('base64') }
  },
  mutate,
}

const SETTINGS = [
  'port',
  'host',
  'store',
  'drain',
  'checks',
  'logLevel',
  'connections',
  'insecureOpenNetwork',
  'config',
  'audit',
  'LEASEHOLD_PORT',
  '__proto__',
]

function example(parser: ParserInput['parser'], random: Random): string {
  switch (parser) {
    case 'hello':
      return JSON.stringify([
        ['hello', random.pick([1, 2]), { client: 'x', tied: random.below(1000) }],
      ])
    case 'requests':
      return JSON.stringify([
        [1, 'claim', '1.1', ['a', { key: 'b' }], 1],
        [2, 'grant', { ttl: null, maxLife: null }],
        [3, 'renew', [hostile(random)]],
        [4, 'release', '1.1', 1, ['a']],
      ])
    case 'config-file':
      return JSON.stringify({ [random.pick(SETTINGS)]: hostile(random), port: 7420 })
    case 'config-flags':
      return `${random.pick(SETTINGS)}=${hostileText(random)}`
    case 'duration':
      return random.pick(['5s', '1.5h', '10ms', '1d', '999999999d', '1e5s', '-1s'])
    case 'right':
      return random.pick(['claim,read:jobs/', 'all:', 'read', 'x:y', ':', ',:'])
    default:
      return Buffer.from([
        0x81,
        2,
        0x5b,
        0x5d,
        0x89,
        0,
        0x88,
        2,
        3,
        0xe8,
        random.below(256),
      ]).toString('base64')
  }
}

function mutate(input: ParserInput, other: ParserInput, random: Random): ParserInput {
  const { parser, text } = input
  if (typeof text !== 'string')
    return { ...input, text: { ...text, times: random.size(text.times * 2) } }
  if (parser === 'records' || parser === 'web-socket') {
    const bytes = Buffer.from(text, 'base64')
    const isJoined = random.oneIn(8) && other.parser === parser && typeof other.text === 'string'
    const next = isJoined
      ? Buffer.concat([bytes, Buffer.from(other.text as string, 'base64')])
      : mutateBytes(bytes, random)
    return { ...input, text: next.subarray(0, 8000).toString('base64') }
  }
  if (random.oneIn(60))
    return { ...input, text: { repeat: text.slice(0, 20) || '[', times: random.size(200_000) } }
  try {
    if (random.oneIn(2))
      return {
        ...input,
        text: JSON.stringify(mutateJson(JSON.parse(text) as Json, random, () => hostile(random))),
      }
  } catch {
    // It is not JSON, or no longer.
  }
  return { ...input, text: mutateString(text, random).slice(0, 200_000) }
}
