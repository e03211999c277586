import { crc32 } from 'node:zlib'
import type { Token } from '../port/index.ts'

/**
 * A line of a fence's log: a resource has seen a token; or this log is sealed, and what comes after
 * this line counts for nothing; or this log's content has moved to the next one.
 */
export type FenceRecord = readonly [resource: string, token: Token] | 'sealed' | 'moved'

/**
 * A record stands on a line of its own and begins with an end of line, so that the rest of one that
 * was cut short, by a full disk or a lost process, spoils none but itself.
 */
export function formatRecord(record: FenceRecord): string {
  const text = JSON.stringify(record)
  const length = Buffer.byteLength(text)
  return `\n${length} ${checksum(length, text)} ${text};\n`
}

const WHOLE = /^(\d{1,6}) ([0-9a-f]{8}) (.*);$/
const CUT_IN_TEXT = /^(\d{1,6}) [0-9a-f]{8} (.*)$/
const CUT_BEFORE_TEXT = /^(\d{0,6}|\d{1,6} [0-9a-f]{0,8})$/

/**
 * The record on a line; `'cut'` where it was not written to its end, so that nobody was answered by
 * it; `'damaged'` where it was, and is not what was written.
 *
 * A line that was cut has no mark at its end, and is shorter than it says. No single fault of the
 * disk can make a whole line look like that: it would have to change both.
 */
export function parseRecord(line: string): FenceRecord | 'cut' | 'damaged' {
  // After a power failure there may be zeros where the rest should be.
  const found = line.replace(/\0+$/, '')
  const whole = WHOLE.exec(found)
  if (whole) {
    const [, length, sum, text] = whole as unknown as [string, string, string, string]
    const isRight = Buffer.byteLength(text) === Number(length) && sum === checksum(length, text)
    return isRight ? (JSON.parse(text) as FenceRecord) : 'damaged'
  }
  const cut = CUT_IN_TEXT.exec(found)
  const isCut = cut ? Buffer.byteLength(cut[2]!) <= Number(cut[1]) : CUT_BEFORE_TEXT.test(found)
  return isCut && !found.endsWith(';') ? 'cut' : 'damaged'
}

function checksum(length: number | string, text: string): string {
  return crc32(`${length} ${text}`).toString(16).padStart(8, '0')
}
