import { LeaseholdError, show } from 'leasehold/port'
import { type Hello, PROTOCOL, type StreamLimits } from 'leasehold/remote'

/** A client broke the protocol. The client receives the message. */
export class MalformedError extends Error {}

const CLIENT_LENGTH_MAX = 128
/** The space in a close frame. */
const REASON_BYTES = 120
/** The deepest nesting. The deepest request, a grant with claims, has five levels. */
const NESTING_MAX = 8

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const BACKSLASH = 0x5c
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** Parses a frame into messages. Each is an array; its content is not checked here. */
export function parseFrame(data: Buffer, limits: StreamLimits): readonly (readonly unknown[])[] {
  checkShape(data, limits)
  let messages: unknown
  try {
    messages = JSON.parse(data.toString('utf8'))
  } catch {
    throw new MalformedError('a frame is not JSON')
  }
  if (!Array.isArray(messages)) throw new MalformedError('a frame is not an array of messages')
  for (const message of messages) if (!Array.isArray(message)) throw notAMessage(message)
  return messages
}

/**
 * Refuses a frame that would take long to parse. The time depends on the number of values more than on
 * the bytes: a frame of one megabyte can contain 300,000 arrays. So they are counted first.
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
        throw new MalformedError(`a frame has more than ${NESTING_MAX} levels`)
      }
    } else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) depth--
  }
  if (messages > frameMessages) {
    throw new MalformedError(`a frame has ${messages} messages; the maximum is ${frameMessages}`)
  }
  if (values > frameValues) {
    throw new MalformedError(`a frame has ${values} values; the maximum is ${frameValues}`)
  }
}

/** The end of the string that begins here. */
function endOfString(data: Buffer, start: number): number {
  let at = start + 1
  while (at < data.length && data[at] !== QUOTE) at += data[at] === BACKSLASH ? 2 : 1
  return at
}

export function notAMessage(message: unknown): MalformedError {
  return new MalformedError(
    `${show(message)} is not a message: a request is [id, operation, …] with an integer id`,
  )
}

/** Parses the first message, or returns the refusal if the version differs. */
export function parseHello(message: readonly unknown[] | undefined): Hello | LeaseholdError {
  const [word, version, hello] = message ?? []
  if (word !== 'hello') throw new MalformedError('the first message must be hello')
  if (version !== PROTOCOL) {
    return new LeaseholdError(
      'unsupported',
      `this server uses version ${PROTOCOL} of the protocol, not ${show(version)}: use a matching client`,
    )
  }
  const { client, tied } = (hello ?? {}) as Partial<Hello>
  if (typeof client !== 'string' || client === '' || client.length > CLIENT_LENGTH_MAX) {
    throw new MalformedError(
      `client is ${show(client)}: it must be a string of 1 to ${CLIENT_LENGTH_MAX} characters`,
    )
  }
  if (tied !== undefined && !(typeof tied === 'number' && tied >= 0)) {
    throw new MalformedError(`tied is ${show(tied)}: it must be milliseconds, 0 or more`)
  }
  return { client, tied }
}

/** Cuts the reason of a close frame without splitting a character, which would not be UTF-8. */
export function cut(reason: string): string {
  return Buffer.from(reason)
    .subarray(0, REASON_BYTES)
    .toString('utf8')
    .replace(/\ufffd$/, '')
}
