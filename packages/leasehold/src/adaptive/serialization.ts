import { show } from '../port/index.ts'
import { HoldHistory, type HoldStatistics } from './hold-history.ts'
import { BUCKETS, type Sketch } from './sketch.ts'

/**
 * A history as a string, to be stored. Its lines: format and checksum of the rest; kind; number of
 * holds observed; and for each generation, newer first, the number of deaths, the buckets of `held`
 * and the buckets of `outlived`. Adjacent buckets are written as the number of the first one and
 * all counts: `93:1,20 120:4`.
 */
const FORM = 'adaptive-ttl/1'
/** The maximum size of a claim's value. Our strings are much shorter. */
const TEXT_LENGTH_MAX = 64 * 1024
const LINES = 8

export function serialize(kind: string, { seen, newer, older }: HoldHistory): string {
  const body = [kind, seen, ...linesOf(newer), ...linesOf(older)].join('\n')
  return `${FORM} ${checksum(body)}\n${body}`
}

/** The history, or a description of what is wrong with the string. */
export function deserialize(text: string, kind: string): HoldHistory | string {
  if (text.length > TEXT_LENGTH_MAX) return `it has ${text.length} characters`
  const [head = '', ...lines] = text.split('\n')
  const [form = '', sum] = head.split(' ')
  if (form !== FORM) return `it begins with ${show(form)} and not with ${FORM}`
  if (sum !== checksum(lines.join('\n'))) return 'its checksum is wrong'
  if (lines[0] !== kind) return `it is about kind ${show(lines[0])}`
  if (lines.length !== LINES) return `it has ${lines.length + 1} lines and not ${LINES + 1}`
  const history = new HoldHistory()
  history.seen = Number(lines[1])
  const isRead =
    isCount(history.seen) &&
    read(lines.slice(2, 5), history.newer) &&
    read(lines.slice(5), history.older)
  return isRead ? history : 'its counts cannot be read'
}

function linesOf({ died, held, outlived }: HoldStatistics): string[] {
  return [String(died), bucketsText(held), bucketsText(outlived)]
}

function read([died, held, outlived]: readonly string[], into: HoldStatistics): boolean {
  into.died = Number(died)
  return (
    isCount(into.died) && readBuckets(held!, into.held) && readBuckets(outlived!, into.outlived)
  )
}

function bucketsText(sketch: Sketch): string {
  let text = ''
  let next = -1
  for (const { bucket, weight } of sketch.bars) {
    if (bucket === next) text += `,${weight}`
    else text += `${text && ' '}${bucket}:${weight}`
    next = bucket + 1
  }
  return text
}

function readBuckets(text: string, into: Sketch): boolean {
  for (const run of text.split(' ').filter((part) => part !== '')) {
    const [start = '', weights = ''] = run.split(':')
    let bucket = Number(start)
    for (const weight of weights.split(',').map(Number)) {
      if (!isCount(bucket) || bucket >= BUCKETS || !isCount(weight)) return false
      into.addToBucket(bucket++, weight)
    }
  }
  return true
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0
}

/** FNV-1a: detects damage, not forgery. It finds every single wrong character. */
export function checksum(text: string): string {
  let sum = 0x811c9dc5
  for (let at = 0; at < text.length; at++) {
    sum = Math.imul(sum ^ text.charCodeAt(at), 0x01000193)
  }
  return (sum >>> 0).toString(16).padStart(8, '0')
}
