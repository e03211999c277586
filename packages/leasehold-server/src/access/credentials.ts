import type { IncomingMessage } from 'node:http'
import { TLSSocket } from 'node:tls'
import type { Credentials } from './access.ts'

/** What a request shows of who sent it: its token, and a certificate if that was verified. */
export function credentialsOf({ headers, socket }: IncomingMessage): Credentials {
  const { authorization } = headers
  if (!(socket instanceof TLSSocket) || !socket.authorized) return { authorization }
  const name = socket.getPeerCertificate().subject?.CN
  return { authorization, certificate: Array.isArray(name) ? name[0] : name }
}
