import { crc32 } from 'node:zlib'
import type { Token } from '../port/index.ts'

/**
 * A line of a fence's log: a resource has seen a token; or the log is sealed, and everything after
 * this line is ignored; or the log's content has moved to the next one.
 */
export type FenceRecord = readonly [resource: string, token: Token] | 'sealed' | 'moved'

/**
 * A record is a line of its own and starts with a newline, so that an incomplete record before it
 * (full disk, killed process) damages only itself.
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
 * The record on a line; `'cut'` if it is incomplete, so that no call was answered with it;
 * `'damaged'` if it is complete but not what was written.
 *
 * An incomplete line has no end mark and is shorter than its length field. No single disk fault can
 * make a complete line look like that: it would have to change both.
 */
export function parseRecord(line: string): FenceRecord | 'cut' | 'damaged' {
  // After a power failure there may be zeros instead of the rest.
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
