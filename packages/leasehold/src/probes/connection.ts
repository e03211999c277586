import { connect, type Socket } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import { type CheckTarget, type ProbeSettings, parseAddress } from '../recipes/index.ts'

/** A check that may not be made, or an answer that will not be taken. */
export class Refused extends Error {
  override readonly name = 'Refused'
}

/**
 * A connection to one address, which is never looked up again: the host's name is only used to say
 * whom we mean, to a server with many names and in the judgement of its certificate.
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
    // Also keeps an error after the answer from being nobody's.
    socket.on('error', reject)
    socket.once(isSecure ? 'secureConnect' : 'connect', () => resolve(socket))
  })
}
