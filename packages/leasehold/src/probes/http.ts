import { request } from 'node:http'
import type { Socket } from 'node:net'
import type { CheckTarget, ProbeResult } from '../recipes/index.ts'
import { Refused } from './connection.ts'

const HEADERS_MAX_BYTES = 8 * 1024

/** Sends an HTTP request over a connection. Only the status is used: the body is never read. */
export function askHttp(
  socket: Socket,
  target: CheckTarget,
  signal: AbortSignal,
): Promise<ProbeResult> {
  const { scheme, host, port, path } = target
  const isUsual = port === (scheme === 'https' ? 443 : 80)
  const name = host.includes(':') ? `[${host}]` : host
  return new Promise((resolve, reject) => {
    const asked = request({
      // The checked connection, and no other: no agent, no proxy, no second lookup.
      createConnection: () => socket,
      path,
      method: 'GET',
      setHost: false,
      headers: {
        host: isUsual ? name : `${name}:${port}`,
        'user-agent': 'leasehold-health-check',
        connection: 'close',
      },
      maxHeaderSize: HEADERS_MAX_BYTES,
      signal,
    })
    asked.on('error', reject)
    asked.on('close', () => reject(new Refused('the connection was closed')))
    asked.on('response', (response) => {
      resolve(resultOf(response.statusCode ?? 0))
      response.destroy()
    })
    asked.end()
  })
}

function resultOf(code: number): ProbeResult {
  if (code >= 200 && code < 300) return { status: 'passing', note: '' }
  if (code === 429) return { status: 'warning', note: 'HTTP 429: it has too much to do' }
  if (code >= 300 && code < 400) {
    return { status: 'critical', note: `HTTP ${code}: redirects are not followed` }
  }
  return { status: 'critical', note: `HTTP ${code}` }
}
