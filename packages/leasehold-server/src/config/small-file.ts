import {
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  openSync,
  readFileSync,
  type Stats,
} from 'node:fs'
import { systemReason } from 'leasehold/port'

/** Settings, keys and certificates are small; a larger file is a mistake. */
const FILE_MAX_BYTES = 1 << 20
/** Opens a named pipe at once, to refuse it, instead of waiting for its other end. */
export const NON_BLOCKING = constants.O_NONBLOCK ?? 0

/** Why a file cannot be used; `code` is the operating system's error code. */
export class FileError extends Error {
  readonly code: string | undefined

  constructor(message: string, code?: string) {
    super(message)
    this.code = code
  }
}

export interface SmallFile {
  readonly content: Buffer
  /** Whether users outside its owner and group can read it. */
  readonly isOpenToOthers: boolean
}

/**
 * Reads a file with settings, a key or certificates. Throws `FileError` if it is missing, empty, too
 * large or not a regular file. With `own`, removes the access of other users.
 */
export function readSmallFile(file: string, { own = false } = {}): SmallFile {
  const descriptor = opened(file)
  try {
    const stats = fstatSync(descriptor)
    const kind = kindOf(stats)
    if (kind !== 'a file') throw new FileError(`it is ${kind}, not a file`)
    if (stats.size === 0) throw new FileError('it is empty')
    if (stats.size > FILE_MAX_BYTES) {
      throw new FileError(`it has ${stats.size} bytes; the maximum is ${FILE_MAX_BYTES}`)
    }
    if (own) restrictToOwner(descriptor, stats)
    return { content: readFileSync(descriptor), isOpenToOthers: isOpen(stats, 0o007) }
  } finally {
    closeSync(descriptor)
  }
}

/** Lets only the owner read and write a file. */
export function restrictToOwner(descriptor: number, stats: Stats): void {
  if (!isOpen(stats, 0o077)) return
  try {
    fchmodSync(descriptor, 0o600)
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException
    throw new FileError(`other users can access it, and chmod failed: ${message}`, code)
  }
}

/** The kind of file, for messages. */
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
    return openSync(file, constants.O_RDONLY | NON_BLOCKING)
  } catch (error) {
    throw new FileError(systemReason(error), (error as NodeJS.ErrnoException).code)
  }
}
