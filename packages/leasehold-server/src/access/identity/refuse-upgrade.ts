import type { Duplex } from 'node:stream'

/**
 * Refuses an upgrade with this status and destroys the socket. A client that does not close its half
 * would otherwise keep the connection open, and a stopping server would wait for it.
 */
export function refuseUpgrade(socket: Duplex, status: string): void {
  socket.once('finish', () => socket.destroy())
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`)
}
