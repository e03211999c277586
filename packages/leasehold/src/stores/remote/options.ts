import type { SecureContextOptions } from 'node:tls'
import {
  type Clock,
  type Duration,
  invalid,
  LeaseholdError,
  milliseconds,
  positive,
  type Random,
  show,
  systemClock,
  systemRandom,
} from '../../port/index.ts'
import type { LinkOptions, OpenSocket } from './link.ts'
import { STREAM_PATH } from './protocol.ts'
import { WebSocketClient } from './web-socket.ts'

export interface RemoteStoreOptions {
  /** How long to look for the server at first, and how long a call may take. 5 s if not given. */
  readonly timeout?: Duration | undefined
  /**
   * The leases that are granted through this store are tied to its connection: when the connection
   * is closed, as by the death of this process, the server revokes them at once instead of letting
   * them run out. With `linger` it waits so long for this store to connect again first.
   *
   * Revoking is not safe in the way that expiry is. Where the connection breaks and the process
   * lives on, somebody else may hold before it has learnt of that; the token then keeps them apart.
   * A longer linger makes this rarer.
   */
  readonly tied?: boolean | { readonly linger: Duration } | undefined
  /** When nothing was heard of the server for so long it is asked, and given up after as long again. */
  readonly silence?: Duration | undefined
  /** Who this is to a server that wants to know: what `leasehold token create` printed. */
  readonly token?: string | undefined
  /** Sent with the request that opens the stream, for a proxy on the way. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** For `https:`, what Node's `tls.connect` takes: `ca`, `cert`, `key`. */
  readonly tls?: SecureContextOptions | undefined
  /** What opens the WebSocket, for tests. One over Node's `http` if not given. */
  readonly socket?: OpenSocket | undefined
  readonly clock?: Clock | undefined
  readonly random?: Random | undefined
}

const overHttp: OpenSocket = (url, options, events) => new WebSocketClient(url, options, events)

const SCHEMES = ['http:', 'https:', 'ws:', 'wss:']
/** What HTTP allows in the name and in the value of a header. */
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

export function linkOptionsOf(url: string | URL, options: RemoteStoreOptions): LinkOptions {
  const { clock = systemClock, random = systemRandom, token, tls } = options
  checkHeaders(options)
  const headers = { ...options.headers, ...(token && { authorization: `Bearer ${token}` }) }
  return {
    url: streamOf(url),
    socket: options.socket ?? overHttp,
    clock,
    random,
    timeout: positive(options.timeout ?? 5000, 'timeout'),
    silence: positive(options.silence ?? 5000, 'silence'),
    headers,
    tls,
    hello: { client: random.id(), tied: lingerOf(options.tied) },
  }
}

/** Neither a token nor the value of a header is shown: both may be secrets. */
function checkHeaders({ token = '', headers = {} }: RemoteStoreOptions): void {
  if (!HEADER_VALUE.test(token)) {
    throw invalid(
      'token has a character that no header may have, such as a line break: give it as it was printed',
    )
  }
  for (const [name, value] of Object.entries(headers)) {
    if (!HEADER_NAME.test(name)) throw invalid(`header ${show(name)} is no name of a header`)
    if (value !== undefined && HEADER_VALUE.test(value)) continue
    throw invalid(`header ${show(name)} has a value that no header may have: give a line of text`)
  }
}

/** Where the stream is, on the server that this names. A path before it is a proxy's. */
function streamOf(text: string | URL): URL {
  const url = URL.canParse(String(text)) ? new URL(text) : undefined
  if (url === undefined || !SCHEMES.includes(url.protocol)) {
    throw new LeaseholdError(
      'invalid-argument',
      `server ${show(String(text))} is no address: write 'http://host:7420', or https:`,
    )
  }
  const secure = url.protocol === 'https:' || url.protocol === 'wss:'
  const path = url.pathname.replace(/\/+$/, '') + STREAM_PATH
  return new URL(`${secure ? 'https' : 'http'}://${url.host}${path}`)
}

function lingerOf(tied: RemoteStoreOptions['tied']): number | undefined {
  if (tied === undefined || tied === false) return undefined
  if (tied === true) return 0
  const linger = milliseconds(tied.linger, 'linger')
  if (linger < Infinity) return linger
  throw new LeaseholdError(
    'invalid-argument',
    "linger is infinite: give a finite one, such as '2s'",
  )
}
