const FINAL_TEXT = 0x81
/** A length in one byte; above it, this byte announces two or eight more. */
const SHORT_MAX = 125
const TWO_BYTES = 126
const EIGHT_BYTES = 127
const TWO_BYTES_MAX = 0xffff

/**
 * A text frame of a WebSocket (RFC 6455), as a server writes it: header and content in one buffer,
 * so that they take one write. The WebSocket library passes two, which costs the system a
 * scattered write for each frame.
 */
export function textFrame(text: string): Buffer {
  const length = Buffer.byteLength(text)
  const start = length <= SHORT_MAX ? 2 : length <= TWO_BYTES_MAX ? 4 : 10
  const frame = Buffer.allocUnsafe(start + length)
  frame[0] = FINAL_TEXT
  if (start === 2) frame[1] = length
  else if (start === 4) {
    frame[1] = TWO_BYTES
    frame.writeUInt16BE(length, 2)
  } else {
    frame[1] = EIGHT_BYTES
    frame.writeBigUInt64BE(BigInt(length), 2)
  }
  frame.write(text, start)
  return frame
}
