import type { Readable } from 'node:stream'

/** About twice the size of a frame with 64 calls, so common frames are not cut. */
const PIECE_BYTES = 8192

/**
 * Delivers what a socket receives in short pieces. One read of the system may hold 64 kB, which is
 * 10,000 pings, and the WebSocket library reports all frames of a piece without a pause in between.
 * With short pieces, `pause` takes effect after a few of them.
 */
export function readInPieces(socket: Readable): void {
  const push = socket.push.bind(socket)
  socket.push = (bytes: Buffer | null, encoding) => {
    if (bytes === null || bytes.length <= PIECE_BYTES) return push(bytes, encoding)
    let wantsMore = true
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      wantsMore = push(bytes.subarray(at, at + PIECE_BYTES))
    }
    return wantsMore
  }
}
