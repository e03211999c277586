import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from 'node:fs'
import { LeaseholdError, show } from 'leasehold/port'

const BYTES_MIN = 32

/** The key in a file that somebody has named: it must be there. */
export function readSecretsKey(file: string, origin: string): Buffer {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    throw new LeaseholdError(
      'invalid-argument',
      `secretsKeyFile is ${show(file)} (from ${origin}), which cannot be read (${(error as Error).message}): name a file with ${BYTES_MIN} random bytes in base64, as 'openssl rand -base64 ${BYTES_MIN}' writes`,
    )
  }
  return decoded(text, file, origin)
}

/** The key in a file of the server's own, made for its owner's eyes only where it is not there. */
export function keepSecretsKey(file: string): Buffer {
  try {
    return decoded(readFileSync(file, 'utf8'), file, 'the folder of the data')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  const key = randomBytes(BYTES_MIN)
  const descriptor = openSync(file, 'wx', 0o600)
  try {
    writeSync(descriptor, `${key.toString('base64')}\n`)
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
  return key
}

function decoded(text: string, file: string, origin: string): Buffer {
  const key = Buffer.from(text.trim(), 'base64')
  if (/^[\w+/-]+={0,2}$/.test(text.trim()) && key.length >= BYTES_MIN) return key
  throw new LeaseholdError(
    'invalid-argument',
    `the file ${show(file)} (from ${origin}) holds no key: it must have at least ${BYTES_MIN} bytes in base64, as 'openssl rand -base64 ${BYTES_MIN}' writes`,
  )
}
