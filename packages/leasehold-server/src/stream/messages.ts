import { LeaseholdError, show } from 'leasehold/port'
import { type Hello, PROTOCOL, type StreamLimits } from 'leasehold/remote'

/** What a client sent is not what the protocol allows. The message is what it is told. */
export class MalformedError extends Error {}

const CLIENT_LENGTH_MAX = 128
/** A close frame has no room for more. */
const REASON_BYTES = 120
/** Arrays and objects within each other. The deepest request, a grant with claims, has five. */
const NESTING_MAX = 8

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BACKSLASH = 0x5c
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** The messages of a frame. Each is an array; what is in it is not checked here. */
export function parseFrame(data: Buffer, limits: StreamLimits): readonly (readonly unknown[])[] {
  checkShape(data, limits)
  let messages: unknown
  try {
    messages = JSON.parse(data.toString('utf8'))
  } catch {
    throw new MalformedError('a frame is not JSON')
  }
  if (!Array.isArray(messages)) throw new MalformedError('a frame is no array of messages')
  for (const message of messages) if (!Array.isArray(message)) throw notAMessage(message)
  return messages
}

/**
 * Refuses a frame that would take long to parse. A parser spends most of its time on the number of
 * values, not of bytes: a frame of a megabyte can hold 300,000 arrays. So they are counted first.
 */
function checkShape(data: Buffer, { frameMessages, frameValues }: StreamLimits): void {
  let depth = 0
  let values = 0
  let messages = 1
  for (let at = 0; at < data.length; at++) {
    const byte = data[at]
    if (byte === QUOTE) at = endOfString(data, at)
    else if (byte === COMMA || byte === COLON) {
      values++
      if (depth === 1) messages++
    } else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) {
      values++
      if (++depth > NESTING_MAX) {
        throw new MalformedError(`a frame is nested more than ${NESTING_MAX} deep`)
      }
    } else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) depth--
  }
  if (messages > frameMessages) {
    throw new MalformedError(
      `a frame has ${messages} messages: at most ${frameMessages} are allowed`,
    )
  }
  if (values > frameValues) {
    throw new MalformedError(`a frame has ${values} values: at most ${frameValues} are allowed`)
  }
}

/** Where the string that begins here ends. */
function endOfString(data: Buffer, start: number): number {
  let at = start + 1
  while (at < data.length && data[at] !== QUOTE) at += data[at] === BACKSLASH ? 2 : 1
  return at
}

export function notAMessage(message: unknown): MalformedError {
  return new MalformedError(
    `${show(message)} is no message: a request is [id, operation, …], with an integer as its id`,
  )
}

/** What the client says of itself, or the refusal if it speaks another version. */
export function parseHello(message: readonly unknown[] | undefined): Hello | LeaseholdError {
  const [word, version, hello] = message ?? []
  if (word !== 'hello') throw new MalformedError('the first message must be hello')
  if (version !== PROTOCOL) {
    return new LeaseholdError(
      'unsupported',
      `this server speaks version ${PROTOCOL} of the protocol, not ${show(version)}: use a client that does`,
    )
  }
  const { client, tied } = (hello ?? {}) as Partial<Hello>
  if (typeof client !== 'string' || client === '' || client.length > CLIENT_LENGTH_MAX) {
    throw new MalformedError(
      `client is ${show(client)}: it must be a text of 1 to ${CLIENT_LENGTH_MAX} characters`,
    )
  }
  if (tied !== undefined && !(typeof tied === 'number' && tied >= 0)) {
    throw new MalformedError(`tied is ${show(tied)}: it must be milliseconds from 0 on`)
  }
  return { client, tied }
}

/** The reason of a close frame, without half a character at its end: that would not be UTF-8. */
export function cut(reason: string): string {
  return Buffer.from(reason)
    .subarray(0, REASON_BYTES)
    .toString('utf8')
    .replace(/\ufffd$/, '')
}
