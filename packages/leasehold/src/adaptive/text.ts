import { show } from '../port/index.ts'
import { type Experience, Memory } from './experience.ts'
import { BUCKETS, type Sketch } from './sketch.ts'

/**
 * A memory as text, to be kept in a store. Its lines: form and checksum of the rest; kind; number of
 * holds seen; and for each generation, the newer one first, the number of deaths, the buckets of
 * `held` and the buckets of `outlived`. Neighbouring buckets are written as the first one's number
 * and all counts: `93:1,20 120:4`.
 */
const FORM = 'adaptive-ttl/1'
/** What a store keeps as a claim's value. No text of ours comes near. */
const TEXT_LENGTH_MAX = 64 * 1024
const LINES = 8

export function textOf(kind: string, { seen, newer, older }: Memory): string {
  const body = [kind, seen, ...linesOf(newer), ...linesOf(older)].join('\n')
  return `${FORM} ${checksum(body)}\n${body}`
}

/** The memory, or in words what is wrong with the text. */
export function memoryOf(text: string, kind: string): Memory | string {
  if (text.length > TEXT_LENGTH_MAX) return `it has ${text.length} characters`
  const [head = '', ...lines] = text.split('\n')
  const [form = '', sum] = head.split(' ')
  if (form !== FORM) return `it begins with ${show(form)} and not with ${FORM}`
  if (sum !== checksum(lines.join('\n'))) return 'its checksum is wrong'
  if (lines[0] !== kind) return `it is about kind ${show(lines[0])}`
  if (lines.length !== LINES) return `it has ${lines.length + 1} lines and not ${LINES + 1}`
  const memory = new Memory()
  memory.seen = Number(lines[1])
  const isRead =
    isCount(memory.seen) &&
    read(lines.slice(2, 5), memory.newer) &&
    read(lines.slice(5), memory.older)
  return isRead ? memory : 'its counts cannot be read'
}

function linesOf({ died, held, outlived }: Experience): string[] {
  return [String(died), bucketsText(held), bucketsText(outlived)]
}

function read([died, held, outlived]: readonly string[], into: Experience): boolean {
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

/** FNV-1a: against a damaged text, not against a forged one. Finds every single wrong character. */
export function checksum(text: string): string {
  let sum = 0x811c9dc5
  for (let at = 0; at < text.length; at++) {
    sum = Math.imul(sum ^ text.charCodeAt(at), 0x01000193)
  }
  return (sum >>> 0).toString(16).padStart(8, '0')
}
