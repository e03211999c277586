import type { IncomingMessage } from 'node:http'
import { isIP } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { Credentials } from './access.ts'

/** What a request shows of who sent it: its token, and a certificate if that was verified. */
export function credentialsOf({ headers, socket }: IncomingMessage): Credentials {
  const { authorization, host } = headers
  const misnamed = isLoopback(socket.localAddress) ? strangeName(host) : undefined
  if (!(socket instanceof TLSSocket) || !socket.authorized) return { authorization, misnamed }
  const name = socket.getPeerCertificate().subject?.CN
  return { authorization, misnamed, certificate: Array.isArray(name) ? name[0] : name }
}

/** The name that this machine was called by, where it is none that only this machine has. */
function strangeName(host: string | undefined): string | undefined {
  const name = (host ?? 'localhost').replace(/:\d+$/, '')
  const bare = name.replace(/^\[(.*)\]$/, '$1')
  return bare.toLowerCase() === 'localhost' || isIP(bare) !== 0 ? undefined : name
}

function isLoopback(address: string | undefined): boolean {
  return address !== undefined && /^(::ffff:)?127\.|^::1$/.test(address)
}
