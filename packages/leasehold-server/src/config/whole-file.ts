import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  openSync,
  readFileSync,
  type Stats,
} from 'node:fs'

/** Settings, keys and certificates are small: what is larger is another file by mistake. */
const FILE_MAX_BYTES = 1 << 20
/** A named pipe is then opened at once, and refused, instead of waiting for its other end. */
export const NO_WAITING = constants.O_NONBLOCK ?? 0

/** Why a file cannot be used, in words; `code` is the system's, if it said so. */
export class FileFault extends Error {
  readonly code: string | undefined

  constructor(message: string, code?: string) {
    super(message)
    this.code = code
  }
}

export interface WholeFile {
  readonly content: Buffer
  /** Whether others than its owner and its group may read it. */
  readonly isOpenToOthers: boolean
}

/**
 * Reads a file of the server's: settings, a key, certificates. Refused with a `FileFault` if there is
 * nothing to read, or if it is no file at all. With `own`, others lose the right to read it.
 */
export function readWhole(file: string, { own = false } = {}): WholeFile {
  const descriptor = opened(file)
  try {
    const stats = fstatSync(descriptor)
    const kind = kindOf(stats)
    if (kind !== 'a file') throw new FileFault(`it is ${kind}, not a file`)
    if (stats.size === 0) throw new FileFault('it is empty')
    if (stats.size > FILE_MAX_BYTES) {
      throw new FileFault(`it has ${stats.size} bytes, and at most ${FILE_MAX_BYTES} are read`)
    }
    if (own) tighten(descriptor, stats)
    return { content: readFileSync(descriptor), isOpenToOthers: isOpen(stats, 0o007) }
  } finally {
    closeSync(descriptor)
  }
}

/** Takes from all but the owner the right to read or write a file. */
export function tighten(descriptor: number, stats: Stats): void {
  if (!isOpen(stats, 0o077)) return
  try {
    fchmodSync(descriptor, 0o600)
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException
    throw new FileFault(`others may read it, and that cannot be changed: ${message}`, code)
  }
}

/** What this is, in words. */
export function kindOf(stats: Stats): string {
  if (stats.isFile()) return 'a file'
  if (stats.isDirectory()) return 'a folder'
  if (stats.isFIFO()) return 'a named pipe'
  if (stats.isSocket()) return 'a socket'
  return 'a device'
}

function isOpen({ mode }: Stats, bits: number): boolean {
  return process.platform !== 'win32' && (mode & bits) !== 0
}

function opened(file: string): number {
  try {
    return openSync(file, constants.O_RDONLY | NO_WAITING)
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException
    throw new FileFault(message, code)
  }
}
