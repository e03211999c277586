import type { End, ErrorCode, Guarantees, Limits, Notice } from '../../port/index.ts'

/**
 * The stream protocol: the messages of a client and a lease server over one WebSocket.
 * `docs/protocol.md` describes it for authors of clients in other languages. The other files of this
 * folder implement both ends.
 *
 * Every frame is a string: a JSON array of messages, and every message is itself an array. All calls
 * of one turn of the event loop are sent in one frame, and so are the answers. JSON, because one call
 * of native code parses a frame of many small arrays: a binary format of our own took no less time
 * to read when measured, and every language has JSON.
 */
export const PROTOCOL = 1

/** Where the server accepts streams. */
export const STREAM_PATH = '/v1/stream'

/**
 * A page cannot send an access token in a header with its WebSocket. It offers two subprotocols
 * instead: this one, which the server accepts, and one that is the token after a prefix.
 */
export const STREAM_PROTOCOL = 'leasehold'
export const ACCESS_TOKEN_PROTOCOL = 'leasehold.access-token.'

/** Why a stream was closed. Codes below 4000 are WebSocket's own. */
export const CLOSE = {
  /** The client is done. */
  done: 1000,
  /** The server stops or restarts: connect again. */
  goingAway: 1001,
  tooLarge: 1009,
  /** The server failed on something that the client sent: connect again. */
  failed: 1011,
  /** A frame was not valid in this protocol. */
  malformed: 4000,
  /** The server does not support the client's version. Connecting again does not help. */
  version: 4001,
  /** The same client has connected again. */
  superseded: 4002,
  /** The client did not read what it was sent. */
  slow: 4003,
  /** The client was silent for too long. */
  silent: 4004,
  /** The server does not know the client, or no longer does. Connecting again does not help. */
  unauthenticated: 4005,
  /** The client goes to another server, and ties its leases there. */
  moved: 4006,
} as const

/** The first message of a client: `["hello", PROTOCOL, Hello]`. */
export interface Hello {
  /** The client's identity: an id that nobody else can guess. The same when it connects again. */
  readonly client: string
  /**
   * Ties the leases that are granted on this stream to it, unless a grant has `tied: false`. They are
   * revoked when it has been closed for this many milliseconds and the same client has not come back.
   * Default: none is tied.
   */
  readonly tied?: number | undefined
}

/** The server's answer to it: `["welcome", PROTOCOL, Welcome]`. */
export interface Welcome {
  /** Identifies the server process: another one after a restart. */
  readonly server: string
  /** The guarantees and limits of the server's store. */
  readonly guarantees: Guarantees
  readonly limits: Limits
  readonly stream: StreamLimits
}

export interface StreamLimits {
  /** Bytes in one frame from the client, and messages in it. */
  readonly frameBytes: number
  readonly frameMessages: number
  /** Values in one frame from the client: its commas, colons and opening brackets. */
  readonly frameValues: number
  /** Requests in progress at a time; the server reads no more until some are answered. */
  readonly inFlight: number
  /** Watches on one stream. */
  readonly watches: number
  /** A client that is silent for this many milliseconds is disconnected. */
  readonly silence: number
}

/** The operations of a client, by the names of the port, and three that belong to the stream. */
export type Operation =
  | 'grant'
  | 'renew'
  | 'revoke'
  | 'claim'
  | 'release'
  | 'update'
  | 'read'
  | 'watch'
  | 'unwatch'
  | 'tie'

/** `[id, operation, …]`: the id is the client's own, and comes back with the answer. */
export type RequestMessage = readonly [id: number, operation: Operation, ...rest: unknown[]]

/** The second field of an answer, `[id, status, …]`. */
export const REFUSED = 0
export const DONE = 1
/** It was not carried out, and may be repeated: connect again and send it again. */
export const AGAIN = 2

export type AnswerMessage =
  | readonly [id: number, status: typeof DONE, ...answer: unknown[]]
  | readonly [id: number, status: typeof REFUSED, code: ErrorCode, text: string, end?: End]
  | readonly [id: number, status: typeof AGAIN]

/** What the server sends without a request. */
export type PushMessage =
  | readonly ['welcome', version: number, welcome: Welcome]
  /** The hello was not accepted; the stream is closed after it. */
  | readonly ['refused', code: ErrorCode, text: string]
  | readonly ['notice', watch: number, notice: Notice]
  /** The server is about to stop: send nothing more here, and connect again when it has closed. */
  | readonly ['bye', why: string]

export type ServerMessage = AnswerMessage | PushMessage

/** A string as JSON. Names and keys are nearly always plain, and then only need quotes. */
export function quote(text: string): string {
  return isPlain(text) ? `"${text}"` : JSON.stringify(text)
}

const SPACE = 0x20
const QUOTE = 0x22
const BACKSLASH = 0x5c
const SURROGATES = 0xd800
const AFTER_SURROGATES = 0xe000

/** Printable, without quotes, backslashes and surrogates. A regular expression takes twice as long. */
function isPlain(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code < SPACE || code === QUOTE || code === BACKSLASH) return false
    if (code >= SURROGATES && code < AFTER_SURROGATES) return false
  }
  return true
}

export function quoteAll(texts: readonly string[]): string {
  if (texts.length === 1) return `[${quote(texts[0]!)}]`
  return JSON.stringify(texts)
}

/** JSON has no infinity, and writes null: in a time, null means never. */
export function endless(time: number | null | undefined): number {
  return time === null || time === undefined ? Infinity : time
}
