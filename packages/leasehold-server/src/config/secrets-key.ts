import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, openSync, renameSync, writeSync } from 'node:fs'
import { invalid, show } from 'leasehold/port'
import { FileFault, readWhole, type WholeFile } from './whole-file.ts'

const BYTES_MIN = 32

/** The key in a file that somebody has named: it must be there. `warn` if others may read it. */
export function readSecretsKey(
  file: string,
  origin: string,
  warn: (message: string) => void = () => {},
): Buffer {
  let whole: WholeFile
  try {
    whole = readWhole(file)
  } catch (error) {
    throw invalid(
      `secretsKeyFile is ${show(file)} (from ${origin}), which cannot be read (${(error as Error).message}): name a file with ${BYTES_MIN} random bytes in base64, as 'openssl rand -base64 ${BYTES_MIN}' writes`,
    )
  }
  if (whole.isOpenToOthers) {
    warn(`secretsKeyFile ${show(file)} can be read by every user of this machine: chmod 600 it`)
  }
  return decoded(whole, file, origin)
}

/** The key in a file of the server's own, for its owner's eyes only; made if it is not there. */
export function keepSecretsKey(file: string): Buffer {
  try {
    return decoded(readWhole(file, { own: true }), file, 'the folder of the data')
  } catch (error) {
    if (!(error instanceof FileFault)) throw error
    if (error.code !== 'ENOENT') {
      throw invalid(
        `the key of lease secrets ${show(file)} cannot be used (${error.message}): put the key back from a backup; or move it away for a new one, and all holders lose their leases`,
      )
    }
  }
  const key = randomBytes(BYTES_MIN)
  writeSecretsKey(file, `${key.toString('base64')}\n`)
  return key
}

/** Writes the file of a key, whole or not at all, for its owner's eyes only. */
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
      `the key of lease secrets ${show(file)} cannot be written (${(error as Error).message}): let this user write to its folder`,
    )
  }
}

function decoded({ content }: WholeFile, file: string, origin: string): Buffer {
  const text = content.toString('utf8').trim()
  const key = Buffer.from(text, 'base64')
  if (/^[\w+/-]+={0,2}$/.test(text) && key.length >= BYTES_MIN) return key
  throw invalid(
    `the file ${show(file)} (from ${origin}) holds no key: it must have at least ${BYTES_MIN} bytes in base64, as 'openssl rand -base64 ${BYTES_MIN}' writes`,
  )
}
