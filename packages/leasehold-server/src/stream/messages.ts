import { LeaseholdError, show } from 'leasehold/port'
import { type Hello, PROTOCOL, type RequestMessage, type StreamLimits } from 'leasehold/remote'

/** What a client sent is not what the protocol allows. The message is what it is told. */
export class MalformedError extends Error {}

const CLIENT_LENGTH_MAX = 128

/** The messages of a frame. Of each it is certain that it is an array; a request has a number. */
export function parseFrame(
  data: Buffer,
  isBinary: boolean,
  { frameMessages }: StreamLimits,
): readonly unknown[] {
  if (isBinary) throw new MalformedError('a frame is binary: send JSON as text')
  let messages: unknown
  try {
    messages = JSON.parse(data.toString('utf8'))
  } catch {
    throw new MalformedError('a frame is not JSON')
  }
  if (!Array.isArray(messages)) throw new MalformedError('a frame is no array of messages')
  if (messages.length > frameMessages) {
    throw new MalformedError(
      `a frame has ${messages.length} messages: at most ${frameMessages} are allowed`,
    )
  }
  for (const message of messages) if (!isMessage(message)) throw notAMessage(message)
  return messages
}

function isMessage(message: unknown): boolean {
  if (!Array.isArray(message)) return false
  return Number.isSafeInteger(message[0] as RequestMessage[0]) || message[0] === 'hello'
}

function notAMessage(message: unknown): MalformedError {
  return new MalformedError(
    `${show(message)} is no message: a request is [id, operation, …], with an integer as its id`,
  )
}

/** What the client says of itself, or the refusal where it speaks another version. */
export function parseHello(message: unknown): Hello | LeaseholdError {
  const [word, version, hello] = message as readonly [unknown, unknown, Partial<Hello> | undefined]
  if (word !== 'hello') throw new MalformedError('the first message must be hello')
  if (version !== PROTOCOL) {
    return new LeaseholdError(
      'unsupported',
      `this server speaks version ${PROTOCOL} of the protocol, not ${show(version)}: use a client that does`,
    )
  }
  const { client, tied } = hello ?? {}
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
