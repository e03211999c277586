import type { StreamLimits } from 'leasehold/remote'

/** The limits of one stream. */
export interface StreamOptions extends StreamLimits {
  /** The most open streams. The server refuses more with 503. */
  readonly connections: number
  /** How long a client may take to say hello, in milliseconds. */
  readonly greeting: number
  /**
   * While this many bytes are unread, the server reads no requests of the client: a client that does
   * not read its answers gets no more of them.
   */
  readonly highWater: number
  /** A client with this many unread bytes is disconnected. Only watches can cause so many. */
  readonly buffered: number
  /** The longest linger of a tied lease, in milliseconds. */
  readonly linger: number
  /** How long a stopping server waits for calls in progress, in milliseconds. */
  readonly drain: number
}

export const DEFAULT_STREAM: StreamOptions = {
  frameBytes: 512 << 10,
  frameMessages: 4096,
  frameValues: 32_768,
  inFlight: 16_384,
  watches: 10_000,
  silence: 15_000,
  connections: 50_000,
  greeting: 5000,
  highWater: 1 << 20,
  buffered: 64 << 20,
  linger: 60_000,
  drain: 5000,
}
