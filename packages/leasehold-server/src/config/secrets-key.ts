import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, openSync, renameSync, writeSync } from 'node:fs'
import { invalid, show, systemReason } from 'leasehold/port'
import { FileError, readSmallFile, type SmallFile } from './small-file.ts'

const BYTES_MIN = 32

/** Reads the key from the configured file. Calls `warn` if other users can read the file. */
export function readSecretsKey(
  file: string,
  origin: string,
  warn: (message: string) => void = () => {},
): Buffer {
  let whole: SmallFile
  try {
    whole = readSmallFile(file)
  } catch (error) {
    throw invalid(
      `secretsKeyFile is ${show(file)} (from ${origin}) and cannot be read: ${(error as Error).message}. Create it with 'openssl rand -base64 ${BYTES_MIN}'`,
    )
  }
  if (whole.isOpenToOthers) {
    warn(`every user of this machine can read secretsKeyFile ${show(file)}; run chmod 600 on it`)
  }
  return decode(whole, file, origin)
}

/** Reads the key from the data folder. Creates it if it is missing; only its owner can read it. */
export function keepSecretsKey(file: string): Buffer {
  try {
    return decode(readSmallFile(file, { own: true }), file, 'the data folder')
  } catch (error) {
    if (!(error instanceof FileError)) throw error
    if (error.code !== 'ENOENT') {
      throw invalid(
        `cannot use the lease secrets key ${show(file)}: ${error.message}. Restore it from a backup; or move it away to create a new one, and all holders lose their leases`,
      )
    }
  }
  const key = randomBytes(BYTES_MIN)
  writeSecretsKey(file, `${key.toString('base64')}\n`)
  return key
}

/** Writes a key file atomically; only its owner can read it. */
export function writeSecretsKey(file: string, content: string | Buffer): void {
  const next = `${file}.new`
  try {
    const descriptor = openSync(next, 'w', 0o600)
    try {
      writeSync(descriptor, content as string)
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
    renameSync(next, file)
  } catch (error) {
    throw invalid(
      `cannot write the lease secrets key ${show(file)}: ${systemReason(error)}. Let this user write to its folder`,
    )
  }
}

function decode({ content }: SmallFile, file: string, origin: string): Buffer {
  const base64 = content.toString('utf8').trim()
  const key = Buffer.from(base64, 'base64')
  if (/^[\w+/-]+={0,2}$/.test(base64) && key.length >= BYTES_MIN) return key
  throw invalid(
    `the file ${show(file)} (from ${origin}) must contain at least ${BYTES_MIN} bytes in base64. Create it with 'openssl rand -base64 ${BYTES_MIN}'`,
  )
}
