import { PROTOCOL, STREAM_PATH } from 'leasehold/remote'
import { WebSocket } from 'ws'
import { type Failure, showsStack } from '../failure.ts'
import { amplify, type Json, mutateBytes, mutateJson, mutateString } from '../mutate.ts'
import type { Random } from '../random.ts'
import type { Target } from '../target.ts'
import { expand, lengthOf, type Text } from '../text.ts'
import { message } from './messages.ts'
import { type Place, SENDERS, type Sender, ServerRunner } from './server-runner.ts'

/** A text frame, a binary frame, or bytes that are no WebSocket frame. */
type Frame = { readonly text: Text } | { readonly binary: string } | { readonly raw: string }

/** One stream: its sender, its first message, and the frames that follow. */
export interface StreamInput {
  readonly sender: Sender
  readonly hello: 'none' | 'plain' | 'tied'
  readonly frames: readonly Frame[]
}

const FRAMES_MAX = 12
const ANSWER_MS = 10_000
/** The id of a request that the server answers after everything before it. */
const LAST = 8_000_001

export const streamTarget: Target<StreamInput> = {
  name: 'stream',
  start: async (coverage) => new ServerRunner(coverage, send),
  generate,
  mutate,
}

function generate(random: Random): StreamInput {
  const frames = Array.from({ length: 1 + random.below(4) }, () => ({
    text: JSON.stringify(Array.from({ length: 1 + random.below(3) }, () => message(random))),
  }))
  const hello = random.pick(['plain', 'plain', 'tied', 'none'] as const)
  return { sender: random.pick(SENDERS), hello, frames }
}

function mutate(input: StreamInput, other: StreamInput, random: Random): StreamInput {
  const { frames } = input
  const at = random.below(Math.max(1, frames.length))
  switch (random.below(10)) {
    case 0:
      return { ...input, sender: random.pick(SENDERS) }
    case 1:
      return { ...input, hello: random.pick(['none', 'plain', 'tied']) }
    case 2:
      return { ...input, frames: frames.toSpliced(at, 1) }
    case 3: {
      const added = random.oneIn(2) ? other.frames : generate(random).frames
      return {
        ...input,
        frames: [...frames.slice(0, at), ...added, ...frames.slice(at)].slice(0, FRAMES_MAX),
      }
    }
    case 4:
      return {
        ...input,
        frames: frames.toSpliced(at, 0, ...(frames[at] ? [frames[at]] : [])).slice(0, FRAMES_MAX),
      }
    default: {
      const frame = frames[at]
      return frame
        ? { ...input, frames: frames.with(at, mutateFrame(frame, random)) }
        : generate(random)
    }
  }
}

function mutateFrame(frame: Frame, random: Random): Frame {
  if ('binary' in frame || 'raw' in frame) {
    const bytes = mutateBytes(
      Buffer.from('raw' in frame ? frame.raw : frame.binary, 'base64'),
      random,
    )
    return 'raw' in frame ? { raw: bytes.toString('base64') } : { binary: bytes.toString('base64') }
  }
  const { text } = frame
  if (typeof text !== 'string') {
    return { text: { ...text, times: Math.max(1, random.size(text.times * 2)) } }
  }
  if (random.oneIn(40)) return { text: amplify(text.slice(0, 1000), random) }
  if (random.oneIn(40)) return { binary: Buffer.from(text).toString('base64') }
  if (random.oneIn(40))
    return { raw: Buffer.from([0x81, 0x85, 1, 2, 3, 4, 5, 6]).toString('base64') }
  if (random.oneIn(5) || text.length > 200_000) return { text: mutateString(text, random) }
  try {
    const value = JSON.parse(text) as Json
    return { text: JSON.stringify(mutateJson(value, random, () => message(random))) }
  } catch {
    return { text: mutateString(text, random) }
  }
}

/** Opens a stream, sends everything, and waits for the answer to the last request. */
async function send(
  { sender, hello, frames }: StreamInput,
  placeOf: (sender: Sender) => Place,
): Promise<Failure | undefined> {
  const { url, authorization } = placeOf(sender)
  const address = `ws://${url.host}${STREAM_PATH}`
  const socket = new WebSocket(address, { headers: authorization ? { authorization } : {} })
  const client = new StreamClient(socket)
  if (!(await client.opened)) return undefined
  const name = `fuzz-${process.hrtime.bigint()}`
  if (hello !== 'none') {
    client.send(
      JSON.stringify([['hello', PROTOCOL, { client: name, ...(hello === 'tied' && { tied: 0 }) }]]),
    )
    await client.received
  }
  let bytes = 0
  let isRaw = false
  for (const frame of frames) {
    if ('text' in frame) bytes += lengthOf(frame.text)
    if (bytes > 40 << 20 || client.isOver) break
    if ('raw' in frame) {
      isRaw = true
      client.raw(Buffer.from(frame.raw, 'base64'))
      // Send the rest as a separate packet.
      await client.pause()
    } else if ('binary' in frame) client.send(Buffer.from(frame.binary, 'base64'))
    else {
      const { text } = frame
      client.send(
        expand(text).replaceAll('$lease', client.lease).replaceAll('"$token"', client.token),
      )
      // The next frame may name the lease that this one was granted.
      if (frames.length > 1 && lengthOf(text) < 10_000) await client.settle()
    }
  }
  if (hello === 'none' && frames.length === 0) return client.end()
  // After an incomplete frame the server rightly waits for the rest.
  if (isRaw) await client.settle()
  else await client.finish()
  return client.end()
}

class StreamClient {
  readonly opened: Promise<boolean>
  lease = '1.1'
  token = '1'
  isOver = false
  readonly #socket: WebSocket
  #failure: Failure | undefined
  #wake = () => {}
  #isLastAnswered = false

  constructor(socket: WebSocket) {
    this.#socket = socket
    this.opened = new Promise((resolve) => {
      socket.once('open', () => resolve(true))
      socket.once('close', () => resolve(false))
    })
    socket.on('error', () => {})
    socket.on('message', (data) => this.#receive(String(data)))
    socket.on('close', () => {
      this.isOver = true
      this.#wake()
    })
  }

  /** Fulfilled by the next message, or at the end. */
  get received(): Promise<void> {
    if (this.isOver) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, 2000)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  send(data: string | Buffer): void {
    if (!this.isOver) this.#socket.send(data, () => {})
  }

  raw(bytes: Buffer): void {
    const { _socket } = this.#socket as unknown as { _socket?: { write(bytes: Buffer): void } }
    _socket?.write(bytes)
  }

  async pause(): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, 1))
  }

  /** Gives the server a moment to answer. */
  async settle(): Promise<void> {
    await Promise.race([this.received, new Promise((resolve) => setTimeout(resolve, 5))])
  }

  async finish(): Promise<void> {
    this.send(JSON.stringify([[LAST, 'read', { key: 'fuzz/last' }]]))
    const deadline = performance.now() + ANSWER_MS
    while (!this.isOver && !this.#isLastAnswered && performance.now() < deadline)
      await this.received
    if (this.isOver || this.#isLastAnswered) return
    this.#failure ??= { kind: 'hang', detail: `no answer for ${ANSWER_MS} ms` }
  }

  end(): Failure | undefined {
    this.#socket.terminate()
    return this.#failure
  }

  #receive(text: string): void {
    const lease = /"lease":"([^"]+)"/.exec(text)
    if (lease) this.lease = lease[1]!
    const token = /"token":(\d+)/.exec(text)
    if (token) this.token = token[1]!
    if (text.includes(`[${LAST},`)) this.#isLastAnswered = true
    if (text.includes('the server failed')) {
      this.#failure ??= { kind: 'server-error', detail: /the server failed[^"]*/.exec(text)![0] }
    }
    if (showsStack(text)) this.#failure ??= { kind: 'stack-trace', detail: text.slice(0, 500) }
    this.#wake()
  }
}
