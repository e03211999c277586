/** The limits of the HTTP API. */
export interface HttpOptions {
  /** The most bytes of one body. A larger one is refused with 413. */
  readonly bodyBytes: number
  /** The most waiting requests. More are refused with 429. */
  readonly waits: number
  /** The longest wait of one request, in milliseconds. A longer one is refused with 400. */
  readonly longPoll: number
  /** The most open event streams. More are refused with 429. */
  readonly streams: number
  /** The interval of heartbeats on an idle event stream, in milliseconds. */
  readonly heartbeat: number
  /** An event stream with this many unread bytes is closed. */
  readonly buffered: number
  /** How long a stopping server waits for requests in progress, in milliseconds. */
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
