import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { PROTOCOL, STREAM_PATH } from 'leasehold/remote'
import { WebSocket } from 'ws'
import { textFrame } from '../../../leasehold/src/stores/remote/frames.ts'

const KEY = 'dGhlIHNhbXBsZSBub25jZQ=='

export function helloFrom(client: string, tied?: number): string {
  return JSON.stringify([['hello', PROTOCOL, { client, tied }]])
}

/** A client that sends any input, and keeps everything that it receives. */
export class RawStream {
  readonly socket: WebSocket
  readonly heard: unknown[][] = []
  readonly closed: Promise<[code: number, reason: string]>
  readonly #looks = new Set<() => void>()

  private constructor(socket: WebSocket) {
    this.socket = socket
    this.closed = new Promise((resolve) => {
      socket.once('close', (code, reason) => {
        resolve([code, String(reason)])
        for (const look of this.#looks) look()
      })
    })
    socket.on('message', (data) => {
      this.heard.push(...JSON.parse(String(data)))
      for (const look of this.#looks) look()
    })
    socket.on('error', () => {})
  }

  static async open(url: string, token?: string): Promise<RawStream> {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const socket = new WebSocket(url.replace('http', 'ws') + STREAM_PATH, { headers })
    const stream = new RawStream(socket)
    await once(socket, 'open')
    return stream
  }

  /** Opens one, and is welcomed. */
  static async greeted(url: string, client: string, more: { token?: string; tied?: number } = {}) {
    const stream = await RawStream.open(url, more.token)
    stream.socket.send(helloFrom(client, more.tied))
    await stream.until(([word]) => word === 'welcome')
    return stream
  }

  send(...messages: readonly unknown[]): void {
    this.socket.send(JSON.stringify(messages))
  }

  /** Sends a request, and is fulfilled with its answer or first notice. */
  ask(id: number, ...request: readonly unknown[]): Promise<unknown[]> {
    this.send([id, ...request])
    return this.until(([first, second]) => first === id || (first === 'notice' && second === id))
  }

  until(matches: (message: unknown[]) => boolean): Promise<unknown[]> {
    return new Promise((resolve, reject) => {
      const look = () => {
        const found = this.heard.find(matches)
        const isOver = this.socket.readyState === WebSocket.CLOSED
        if (found === undefined && !isOver) return
        this.#looks.delete(look)
        if (found) resolve(found)
        else reject(new Error(`closed without it; heard ${JSON.stringify(this.heard)}`))
      }
      this.#looks.add(look)
      look()
    })
  }
}

/** A connection that was upgraded, for bytes that no WebSocket library would send. */
export async function rawSocket(url: string, token?: string): Promise<Socket> {
  const { port, hostname } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  await once(socket, 'connect')
  const authorization = token === undefined ? '' : `authorization: Bearer ${token}\r\n`
  socket.write(
    `GET ${STREAM_PATH} HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n` +
      `${authorization}sec-websocket-version: 13\r\nsec-websocket-key: ${KEY}\r\n\r\n`,
  )
  await once(socket, 'data')
  socket.write(textFrame(helloFrom(`raw-${socket.localPort}`, 0), 1))
  await once(socket, 'data')
  return socket
}
