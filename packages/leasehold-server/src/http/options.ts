/** The limits of the HTTP API, and what a client that passes them must expect. */
export interface HttpOptions {
  /** Bytes of one body. A larger one is refused with 413. */
  readonly bodyBytes: number
  /** Requests that wait for something at a time. More are refused with 429. */
  readonly waits: number
  /** The longest that one request may wait, in milliseconds. A longer wish is refused with 400. */
  readonly longPoll: number
  /** Event streams at a time. More are refused with 429. */
  readonly streams: number
  /** How often an event stream on which nothing happens shows that it lives, in milliseconds. */
  readonly heartbeat: number
  /** An event stream that lets so many bytes wait is cut off. */
  readonly buffered: number
  /** How long a server that stops waits for what is under way, in milliseconds. */
  readonly drain: number
}

export const DEFAULT_HTTP: HttpOptions = {
  bodyBytes: 1 << 20,
  waits: 10_000,
  longPoll: 5 * 60_000,
  streams: 1000,
  heartbeat: 15_000,
  buffered: 4 << 20,
  drain: 5000,
}
