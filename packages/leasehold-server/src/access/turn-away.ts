import type { Duplex } from 'node:stream'

/**
 * Answers a connection that is not let in with this status, and lets go of it: one that does not
 * close its own half would otherwise stay for ever, and a server that stops would wait for it.
 */
export function turnAway(socket: Duplex, status: string): void {
  socket.once('finish', () => socket.destroy())
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`)
}
