import type { End, EndReason, Mode } from '../../../port/index.ts'

/**
 * The strings that go to and come from the script. Fields are separated by control characters, which
 * keys never contain. Any other string of a caller is escaped on its way in and unescaped on its
 * way out, so that the script can join and split strings without looking into them.
 */
export const US = '\x1f'
export const RS = '\x1e'
const GS = '\x1d'
export const FS = '\x1c'
const ESCAPE = '\x1b'
const SPECIAL = new RegExp(`[${ESCAPE}-${US}]`, 'g')
const ESCAPED = new RegExp(`${ESCAPE}(.)`, 'g')

export function escaped(text: string): string {
  return text.replace(SPECIAL, (found) => ESCAPE + String.fromCharCode(found.charCodeAt(0) + 0x40))
}

export function unescaped(text: string): string {
  if (!text.includes(ESCAPE)) return text
  return text.replace(ESCAPED, (_, letter: string) =>
    String.fromCharCode(letter.charCodeAt(0) - 0x40),
  )
}

/** A string that may be missing: the empty one is missing, and any other starts with this. */
export function optional(text: string | undefined): string {
  return text === undefined ? '' : `=${escaped(text)}`
}

export function fromOptional(text: string | undefined): string | undefined {
  return text ? unescaped(text.slice(1)) : undefined
}

/** A duration. An infinite one is the empty string. */
export function span(ms: number): string {
  return ms === Infinity ? '' : String(ms)
}

export function endless(text: string): number {
  return text === '' ? Infinity : Number(text)
}

const EXCLUSIVE = '########'
const UNLIMITED = '00000000'

export function modeField(mode: Mode | undefined, limit: number | undefined): string {
  if (mode !== 'shared') return EXCLUSIVE
  return limit === undefined ? UNLIMITED : String(limit).padStart(8, '0')
}

export function modeOf(text: string): { mode: Mode; limit: number | undefined } {
  return text === EXCLUSIVE
    ? { mode: 'exclusive', limit: undefined }
    : { mode: 'shared', limit: Number(text) || undefined }
}

export function endOf(text: string): End | undefined {
  if (text === '') return undefined
  const [reason, by, why] = text.split(GS)
  return { reason: reason as EndReason, by: fromOptional(by), why: fromOptional(why) }
}
