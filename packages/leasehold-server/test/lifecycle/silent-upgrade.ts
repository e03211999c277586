import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** Requests a WebSocket, and then neither sends anything nor closes its half. */
export async function silentUpgrade(url: string, path: string): Promise<Socket> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
  socket.on('error', () => {})
  await once(socket, 'connect')
  const lines = [
    `GET ${path} HTTP/1.1`,
    `host: ${hostname}:${port}`,
    'connection: upgrade',
    'upgrade: websocket',
    'sec-websocket-version: 13',
    'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==',
  ]
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  await once(socket, 'data')
  return socket
}
