import { connect, type Socket } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import { type CheckTarget, type ProbeSettings, parseAddress } from '../recipes/index.ts'

/** A check that is not allowed, or an answer that is not accepted. */
export class Refused extends Error {
  override readonly name = 'Refused'
}

/**
 * A connection to one address, which is not resolved again. The host name is only used to select the
 * server's name (SNI) and to verify its certificate.
 */
export function connectTo(
  { scheme, host, port }: CheckTarget,
  address: string,
  ca: ProbeSettings['ca'],
  signal: AbortSignal,
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const isSecure = scheme === 'https' || scheme === 'grpcs'
    const place = { host: address, port }
    const name = parseAddress(host) === undefined ? host : ''
    const socket = isSecure
      ? connectSecurely({
          ...place,
          servername: name,
          ca: typeof ca === 'string' ? ca : ca && [...ca],
          ALPNProtocols: [scheme === 'grpcs' ? 'h2' : 'http/1.1'],
        })
      : connect(place)
    const stop = () => socket.destroy(new Refused('it took too long'))
    signal.addEventListener('abort', stop, { once: true })
    socket.once('close', () => {
      signal.removeEventListener('abort', stop)
      reject(new Refused('the connection was closed'))
    })
    // Also handles an error that comes after the answer.
    socket.on('error', reject)
    socket.once(isSecure ? 'secureConnect' : 'connect', () => resolve(socket))
  })
}
