import type { SecureContextOptions } from 'node:tls'
import {
  type Clock,
  checkNames,
  type Duration,
  invalid,
  knownNames,
  LeaseholdError,
  milliseconds,
  positive,
  type Random,
  show,
  systemClock,
  systemRandom,
} from '../../port/index.ts'
import { STREAM_PATH } from './protocol.ts'
import type { OpenSocket, ServerConnectionOptions } from './server-connection.ts'
import { WebSocketClient } from './web-socket.ts'

/**
 * A server's URL, or those of several servers on the same engine, as an array or with commas between
 * them. The client uses one of them, and another when that one fails.
 */
export type ServerAddress = string | URL | readonly (string | URL)[]

export interface RemoteStoreOptions {
  /** How long to try to reach the server at first, and how long a call may take. Default: 5 s. */
  readonly timeout?: Duration | undefined
  /**
   * Ties the leases that are granted through this store to its connection, unless a grant says
   * otherwise. When the connection closes,
   * for example because this process died, the server revokes them at once instead of letting them
   * expire. With `linger` it first waits this long for the store to connect again.
   *
   * Revoking is not as safe as expiry. If the connection breaks and the process lives on, another
   * holder may get the key before the process knows; the token then keeps them apart. A longer linger
   * makes this less likely.
   */
  readonly tied?: boolean | { readonly linger: Duration } | undefined
  /**
   * After this long without a message, the server is pinged; after as long again, it is given up. 5 s
   * if not given. With several servers 750 ms, or a quarter of a shorter `timeout`: then a call, or a
   * lease of a few seconds, continues on the next server if one freezes.
   */
  readonly silence?: Duration | undefined
  /** The access token that `leasehold access-token create` printed. */
  readonly accessToken?: string | undefined
  /** @deprecated Use `accessToken`. */
  readonly token?: string | undefined
  /** Sent with the request that opens the stream, for a proxy in between. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** For `https:`, options of Node's `tls.connect`: `ca`, `cert`, `key`. */
  readonly tls?: SecureContextOptions | undefined
  /** Opens the WebSocket, for tests. Default: one over Node's `http`. */
  readonly socket?: OpenSocket | undefined
  readonly clock?: Clock | undefined
  readonly random?: Random | undefined
}

const SILENCE_MS = 5000
const SILENCE_OF_SEVERAL_MS = 750

const REMOTE_STORE_OPTIONS = knownNames<RemoteStoreOptions>({
  timeout: true,
  tied: true,
  silence: true,
  accessToken: true,
  token: true,
  headers: true,
  tls: true,
  socket: true,
  clock: true,
  random: true,
})

const overHttp: OpenSocket = (url, options, events) => new WebSocketClient(url, options, events)

const SCHEMES = ['http:', 'https:', 'ws:', 'wss:']
/** What HTTP allows in the name and in the value of a header. */
const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

export function connectionOptionsOf(
  url: ServerAddress,
  options: RemoteStoreOptions,
): ServerConnectionOptions {
  checkNames('remoteStore', options, REMOTE_STORE_OPTIONS)
  const { clock = systemClock, random = systemRandom, tls } = options
  const accessToken = accessTokenOf(options)
  checkHeaders(accessToken, options.headers)
  const bearer = accessToken && { authorization: `Bearer ${accessToken}` }
  const headers = { ...options.headers, ...bearer }
  const urls = addressesOf(url).map(streamOf)
  const timeout = positive(options.timeout ?? 5000, 'timeout')
  const silence = urls.length === 1 ? SILENCE_MS : Math.min(SILENCE_OF_SEVERAL_MS, timeout / 4)
  return {
    urls,
    socket: options.socket ?? overHttp,
    clock,
    random,
    timeout,
    silence: positive(options.silence ?? silence, 'silence'),
    headers,
    tls,
    hello: { client: random.id(), tied: lingerOf(options.tied) },
    tiesByDefault: options.tied !== undefined && options.tied !== false,
  }
}

export function accessTokenOf({ accessToken, token }: RemoteStoreOptions): string | undefined {
  return accessToken ?? token
}

/** The message shows neither the access token nor the value of a header: both may be secrets. */
function checkHeaders(accessToken = '', headers: RemoteStoreOptions['headers'] = {}): void {
  if (!HEADER_VALUE.test(accessToken)) {
    throw invalid(
      'accessToken has a character that no header may have, such as a line break: use it as it was printed',
    )
  }
  for (const [name, value] of Object.entries(headers)) {
    if (!HEADER_NAME.test(name)) throw invalid(`header ${show(name)} is not a valid header name`)
    if (value !== undefined && HEADER_VALUE.test(value)) continue
    throw invalid(`header ${show(name)} has an invalid value: give one printable line`)
  }
}

/** Several servers in one string are separated by commas. */
const BETWEEN_ADDRESSES = /,\s*(?=[a-z]+:)/

function addressesOf(url: ServerAddress): readonly string[] {
  const given = url instanceof URL || typeof url === 'string' ? [url] : url
  const all = given.flatMap((each) => String(each).split(BETWEEN_ADDRESSES))
  if (all.length > 0) return all
  throw invalid("no server is given: give at least one address, such as 'http://host:7420'")
}

/** The address of the stream on this server. A path before it is a proxy's. */
function streamOf(text: string | URL): URL {
  const url = URL.canParse(String(text)) ? new URL(text) : undefined
  if (url === undefined || !SCHEMES.includes(url.protocol)) {
    throw new LeaseholdError(
      'invalid-argument',
      `server ${show(String(text))} is not an address: give 'http://host:7420', or https:`,
    )
  }
  const secure = url.protocol === 'https:' || url.protocol === 'wss:'
  const path = url.pathname.replace(/\/+$/, '') + STREAM_PATH
  return new URL(`${secure ? 'https' : 'http'}://${url.host}${path}`)
}

function lingerOf(tied: RemoteStoreOptions['tied']): number {
  if (typeof tied !== 'object') return 0
  const linger = milliseconds(tied.linger, 'linger')
  if (linger < Infinity) return linger
  throw new LeaseholdError(
    'invalid-argument',
    "linger is infinite: give a finite one, such as '2s'",
  )
}
