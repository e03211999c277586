import type { StreamLimits } from 'leasehold/remote'

/** The limits of one stream, and what a client that passes them must expect. */
export interface StreamOptions extends StreamLimits {
  /** Streams at a time. More are turned away with 503. */
  readonly connections: number
  /** How long a client may take to say hello, in milliseconds. */
  readonly greeting: number
  /**
   * While so many bytes wait for the client to read them, no request of its is read: who does not
   * read its answers gets no more of them.
   */
  readonly highWater: number
  /** A client that lets so many bytes wait, which can only be what it watches, is disconnected. */
  readonly buffered: number
  /** The longest linger of a tied lease, in milliseconds. */
  readonly linger: number
  /** How long a server that stops waits for what is under way, in milliseconds. */
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
