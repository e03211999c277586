import type { End, ErrorCode, Guarantees, Limits, Notice } from '../../port/index.ts'

/**
 * The stream protocol: what a client and a server of leases say to each other over one WebSocket.
 * `docs/protocol.md` is its description for those who write a client in another language; the files
 * beside this one are what both of our ends are made of.
 *
 * Every frame is a text: a JSON array of messages, and every message is an array itself. What was
 * asked in one turn of the event loop travels in one frame, and so do the answers. JSON, because a
 * frame of many small arrays is parsed by one call of native code: a binary form of our own was
 * measured to take no less time to read, and every language has JSON.
 */
export const PROTOCOL = 1

/** Where the server listens for streams. */
export const STREAM_PATH = '/v1/stream'

/** Why a stream was closed. Below 4000 they are WebSocket's own. */
export const CLOSE = {
  /** The client is done. */
  done: 1000,
  /** The server stops or restarts: connect again. */
  goingAway: 1001,
  tooLarge: 1009,
  /** The server failed on something that the client sent: connect again. */
  failed: 1011,
  /** A frame was not what this protocol allows. */
  malformed: 4000,
  /** The client speaks a version that the server does not. Connecting again does not help. */
  version: 4001,
  /** The same client has connected again. */
  superseded: 4002,
  /** The client did not read what it was sent. */
  slow: 4003,
  /** Nothing was heard of the client for too long. */
  silent: 4004,
  /** The server does not know who connects, or not any more. Connecting again does not help. */
  unauthenticated: 4005,
} as const

/** The first message of a client: `["hello", PROTOCOL, Hello]`. */
export interface Hello {
  /** Who connects: an id that nobody else can guess. The same when it connects again. */
  readonly client: string
  /**
   * The leases that are granted on this stream are tied to it: they are revoked when it has been
   * closed for so many milliseconds and the same client has not come back. Not tied if not given.
   */
  readonly tied?: number | undefined
}

/** The server's answer to it: `["welcome", PROTOCOL, Welcome]`. */
export interface Welcome {
  /** Which server process this is: another one after a restart. */
  readonly server: string
  /** What the server's store promises, and its limits. */
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
  /** Requests that are carried out at a time; the server reads no more until some are answered. */
  readonly inFlight: number
  /** Watches on one stream. */
  readonly watches: number
  /** A client of which nothing was heard for so many milliseconds is disconnected. */
  readonly silence: number
}

/** What a client asks for, by the names of the port, and three that belong to the stream. */
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
/** It was not carried out, and nothing speaks against it: connect again and send it again. */
export const AGAIN = 2

export type AnswerMessage =
  | readonly [id: number, status: typeof DONE, ...answer: unknown[]]
  | readonly [id: number, status: typeof REFUSED, code: ErrorCode, text: string, end?: End]
  | readonly [id: number, status: typeof AGAIN]

/** What the server sends without being asked. */
export type PushMessage =
  | readonly ['welcome', version: number, welcome: Welcome]
  /** The hello was not accepted; the stream is closed after it. */
  | readonly ['refused', code: ErrorCode, text: string]
  | readonly ['notice', watch: number, notice: Notice]
  /** The server is about to go: send nothing more here, and connect again when it has closed. */
  | readonly ['bye', why: string]

export type ServerMessage = AnswerMessage | PushMessage

/** A text as JSON. Names and keys are plain nearly always, and are then only put in quotes. */
export function quote(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : JSON.stringify(text)
}

/** Printable, without quotes, backslashes and surrogates. */
const PLAIN = /^[ !#-[\]-\ud7ff\ue000-\uffff]*$/

export function quoteAll(texts: readonly string[]): string {
  if (texts.length === 1) return `[${quote(texts[0]!)}]`
  return JSON.stringify(texts)
}

/** JSON has no infinity, and writes null: in a time, null is what never ends. */
export function endless(time: number | null | undefined): number {
  return time === null || time === undefined ? Infinity : time
}
