/** The data to damage: a short log, a log in many segments, a log with a snapshot. */
export const TEMPLATES = ['log', 'segments', 'snapshot'] as const
export type Template = (typeof TEMPLATES)[number]

export const WAYS = ['zero', 'ones', 'flip', 'set', 'remove', 'insert', 'repeat'] as const
export type Way = (typeof WAYS)[number]

export const SPECIAL_KINDS = ['fifo', 'folder', 'link', 'dead-link', 'file', 'unreadable'] as const

/**
 * One damage. Positions are taken modulo the size, so that every number is valid.
 * - `bytes`: changes bytes of a file, as a disk or a copy may.
 * - `payload`: changes the payload of a frame and corrects its checksums.
 * - `special`: replaces a name by something else than a file, in a real folder.
 */
export type Edit =
  | {
      readonly op: 'bytes'
      readonly file: number
      readonly at: number
      readonly length: number
      readonly way: Way
      readonly value: number
    }
  | {
      readonly op: 'payload'
      readonly frame: number
      readonly at: number
      readonly length: number
      readonly way: Way
      readonly value: number
    }
  | { readonly op: 'cut' | 'grow'; readonly file: number; readonly at: number }
  | { readonly op: 'delete' | 'double'; readonly file: number }
  | { readonly op: 'swap' | 'copy'; readonly file: number; readonly other: number }
  | {
      readonly op: 'special'
      readonly name: string
      readonly kind: (typeof SPECIAL_KINDS)[number]
      readonly text?: string
    }

export interface FileInput {
  readonly template: Template
  readonly edits: readonly Edit[]
}

export function changed(
  bytes: Buffer,
  way: Way,
  at: number,
  length: number,
  value: number,
): Buffer {
  const from = bytes.length === 0 ? 0 : at % bytes.length
  const to = Math.min(bytes.length, from + length)
  const copy = Buffer.from(bytes)
  switch (way) {
    case 'zero':
      return copy.fill(0, from, to)
    case 'ones':
      return copy.fill(0xff, from, to)
    case 'flip':
      if (from < copy.length) copy[from] = copy[from]! ^ (1 << (value & 7))
      return copy
    case 'set':
      if (from < copy.length) copy[from] = value & 0xff
      return copy
    case 'remove':
      return Buffer.concat([copy.subarray(0, from), copy.subarray(to)])
    case 'insert':
      return Buffer.concat([
        copy.subarray(0, from),
        Buffer.alloc(Math.min(length, 64), value & 0xff),
        copy.subarray(from),
      ])
    case 'repeat':
      return Buffer.concat([copy.subarray(0, to), copy.subarray(from)])
  }
}
