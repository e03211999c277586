import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { TLSSocket } from 'node:tls'
import { ACCESS_TOKEN_PROTOCOL } from 'leasehold/remote'
import type { Credentials } from '../access.ts'
import { isForeign } from './origin.ts'

/**
 * The credentials in a request: an access token, a verified certificate, or a browser session. A
 * session counts only for pages of this server.
 */
export function credentialsOf({ headers, socket }: IncomingMessage): Credentials {
  const { host, authorization = offeredToken(headers['sec-websocket-protocol']) } = headers
  const misnamed = isLoopback(socket.localAddress) ? foreignName(host) : undefined
  const session = isForeign(headers) ? undefined : sessionIn(headers.cookie, socket.localPort)
  const shown = { authorization, misnamed, session, address: socket.remoteAddress }
  if (!(socket instanceof TLSSocket) || !socket.authorized) return shown
  return { ...shown, certificate: socket.getPeerCertificate().subject?.CN }
}

/** A page sends its access token as the name of a subprotocol: it can give its WebSocket no header. */
function offeredToken(protocols: string | undefined): string | undefined {
  const offered = protocols?.split(/, */).find((name) => name.startsWith(ACCESS_TOKEN_PROTOCOL))
  return offered && `Bearer ${offered.slice(ACCESS_TOKEN_PROTOCOL.length)}`
}

/**
 * The cookie of a browser session. Browsers send cookies to all ports of a host, so the name contains
 * the port: two servers on one machine must not sign each other out.
 */
export function cookieName(port: number | undefined, isSecure: boolean): string {
  return `${isSecure ? '__Host-' : ''}leasehold-${port ?? 0}`
}

function sessionIn(cookies: string | undefined, port: number | undefined): string | undefined {
  if (cookies === undefined) return undefined
  const names = [cookieName(port, true), cookieName(port, false)]
  for (const cookie of cookies.split(/; */)) {
    const [name, value] = cookie.split('=') as [string, string?]
    if (names.includes(name)) return value
  }
  return undefined
}

/** The host name of a request, if it is not localhost or an address. */
function foreignName(host: string | undefined): string | undefined {
  const name = (host ?? 'localhost').replace(/:\d+$/, '')
  const bare = name.replace(/^\[(.*)\]$/, '$1')
  return bare.toLowerCase() === 'localhost' || isIP(bare) !== 0 ? undefined : name
}

function isLoopback(address: string | undefined): boolean {
  return address !== undefined && /^(::ffff:)?127\.|^::1$/.test(address)
}
