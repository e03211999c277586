import { isUtf8 } from 'node:buffer'

/** The frames of a WebSocket (RFC 6455), as a client writes and reads them. Without extensions. */
export const OPCODE = { more: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

const FINAL = 0x80
const MASKED = 0x80
/** A header is shorter than this. With this much room before it, the content can be read in steps. */
const ROOM = 16
const CONTROL_MAX = 125
/** Fragments of one message: each costs memory, however small it is. */
const FRAGMENTS_MAX = 16_384

/** A frame that is ready to be sent. Its content is masked, as a client must do. */
export function textFrame(text: string, mask: number): Buffer {
  const bytes = Buffer.byteLength(text)
  const buffer = Buffer.allocUnsafe(ROOM + bytes)
  buffer.write(text, ROOM)
  return finish(buffer, OPCODE.text, mask)
}

export function controlFrame(opcode: number, content: Buffer, mask: number): Buffer {
  const buffer = Buffer.allocUnsafe(ROOM + content.length)
  content.copy(buffer, ROOM)
  return finish(buffer, opcode, mask)
}

/** A close frame's content: the code, and as much of the reason as fits. */
export function closing(code: number, reason: string): Buffer {
  const text = Buffer.from(reason).subarray(0, CONTROL_MAX - 2)
  const content = Buffer.alloc(2 + text.length)
  content.writeUInt16BE(code)
  text.copy(content, 2)
  return content
}

/** Masks the content and puts the header directly before it. */
function finish(buffer: Buffer, opcode: number, mask: number): Buffer {
  const length = buffer.length - ROOM
  applyMask(buffer, mask)
  buffer.writeInt32LE(mask, ROOM - 4)
  if (length < 126) return begin(buffer, ROOM - 6, opcode, length)
  if (length < 0x10000) {
    buffer.writeUInt16BE(length, ROOM - 6)
    return begin(buffer, ROOM - 8, opcode, 126)
  }
  buffer.writeBigUInt64BE(BigInt(length), ROOM - 12)
  return begin(buffer, ROOM - 14, opcode, 127)
}

function begin(buffer: Buffer, at: number, opcode: number, length: number): Buffer {
  buffer[at] = FINAL | opcode
  buffer[at + 1] = MASKED | length
  return buffer.subarray(at)
}

/** Four bytes at a time, in the machine's byte order. The mask is stored with its lowest byte first. */
function applyMask(buffer: Buffer, mask: number): void {
  const steps = (buffer.length - ROOM) >> 2
  const view = new DataView(buffer.buffer, buffer.byteOffset + ROOM)
  for (let step = 0; step < steps; step++) {
    view.setInt32(step << 2, view.getInt32(step << 2, true) ^ mask, true)
  }
  for (let at = ROOM + (steps << 2); at < buffer.length; at++) {
    buffer[at]! ^= mask >>> ((at & 3) << 3)
  }
}

export interface FrameEvents {
  text(text: string): void
  ping(content: Buffer): void
  pong(): void
  close(code: number, reason: string): void
}

/** The other side broke the rules. The code is the close code to answer with. */
export class FrameError extends Error {
  readonly code: number

  constructor(code: number, message: string) {
    super(message)
    this.code = code
  }
}

interface Header {
  readonly final: boolean
  readonly opcode: number
  /** Where the content begins and ends. */
  readonly start: number
  readonly end: number
}

/**
 * Reads frames from chunks of any size. A message may come in fragments, with control frames between
 * them. One that is larger than `largest` is refused before it is collected.
 */
export class FrameReader {
  readonly #events: FrameEvents
  readonly #largest: number
  #pieces: Buffer[] = []
  #size = 0
  /** Nothing can be read before this many bytes have arrived. */
  #wanted = 2
  #fragments: Buffer[] = []
  #fragmentBytes = 0
  #inMessage = false

  constructor(events: FrameEvents, largest: number) {
    this.#events = events
    this.#largest = largest
  }

  read(piece: Buffer): void {
    this.#pieces.push(piece)
    this.#size += piece.length
    if (this.#size < this.#wanted) return
    const bytes = this.#pieces.length === 1 ? piece : Buffer.concat(this.#pieces, this.#size)
    let at = 0
    for (;;) {
      const header = this.#header(bytes, at)
      if (typeof header === 'number' || header.end > bytes.length) {
        this.#wanted = (typeof header === 'number' ? header : header.end) - at
        break
      }
      this.#frame(header, bytes.subarray(header.start, header.end))
      at = header.end
    }
    this.#pieces = at < bytes.length ? [bytes.subarray(at)] : []
    this.#size = bytes.length - at
  }

  /** The header at this position, or how many bytes are needed before it can be read. */
  #header(bytes: Buffer, at: number): Header | number {
    if (bytes.length < at + 2) return at + 2
    const first = bytes[at]!
    const second = bytes[at + 1]!
    if ((first & 0x70) !== 0) throw new FrameError(1002, 'a frame uses an extension')
    if ((second & MASKED) !== 0) throw new FrameError(1002, 'a frame of the server is masked')
    const short = second & 0x7f
    const start = at + (short === 126 ? 4 : short === 127 ? 10 : 2)
    if (bytes.length < start) return start
    const length =
      short === 126
        ? bytes.readUInt16BE(at + 2)
        : short === 127
          ? Number(bytes.readBigUInt64BE(at + 2))
          : short
    const opcode = first & 0x0f
    const final = (first & FINAL) !== 0
    if (opcode >= 8 && (!final || length > CONTROL_MAX)) {
      throw new FrameError(1002, 'a control frame is in fragments or too long')
    }
    if (length + this.#fragmentBytes > this.#largest) {
      throw new FrameError(1009, `a message is larger than ${this.#largest} bytes`)
    }
    return { final, opcode, start, end: start + length }
  }

  #frame({ final, opcode }: Header, content: Buffer): void {
    if (opcode === OPCODE.text || opcode === OPCODE.more) this.#data(opcode, final, content)
    else if (opcode === OPCODE.ping) this.#events.ping(content)
    else if (opcode === OPCODE.pong) this.#events.pong()
    else if (opcode === OPCODE.close) this.#close(content)
    else
      throw new FrameError(1003, `a frame has the opcode ${opcode}; only text frames are allowed`)
  }

  #data(opcode: number, final: boolean, content: Buffer): void {
    if ((opcode === OPCODE.more) !== this.#inMessage) {
      throw new FrameError(1002, 'a fragment is not where it belongs')
    }
    this.#inMessage = !final
    if (final && this.#fragments.length === 0) {
      this.#events.text(textOf(content))
      return
    }
    if (this.#fragments.length === FRAGMENTS_MAX) {
      throw new FrameError(1008, `a message is in more than ${FRAGMENTS_MAX} fragments`)
    }
    this.#fragments.push(content)
    this.#fragmentBytes += content.length
    if (!final) return
    const whole = Buffer.concat(this.#fragments, this.#fragmentBytes)
    this.#fragments = []
    this.#fragmentBytes = 0
    this.#events.text(textOf(whole))
  }

  #close(content: Buffer): void {
    if (content.length < 2) this.#events.close(1005, '')
    else this.#events.close(content.readUInt16BE(0), content.toString('utf8', 2))
  }
}

function textOf(content: Buffer): string {
  if (!isUtf8(content)) throw new FrameError(1007, 'a text is not UTF-8')
  return content.toString('utf8')
}
