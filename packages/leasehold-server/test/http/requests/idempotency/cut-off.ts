import { connect, type Socket } from 'node:net'
import type { Scene } from '../../scene.ts'

/** Sends a request over its own socket, which the test can cut at any moment. */
export async function sendRaw(scene: Scene, what: string, key: string): Promise<Socket> {
  const { hostname, port } = new URL(scene.server.url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  socket.resume()
  await new Promise<void>((resolve) => socket.once('connect', () => resolve()))
  socket.write(`${what} HTTP/1.1\r\nhost: ${hostname}\r\nidempotency-key: ${key}\r\n\r\n`)
  return socket
}

/** A number of turns of the event loop. */
export async function turns(count: number): Promise<void> {
  for (let at = 0; at < count; at++) await new Promise((resolve) => setImmediate(resolve))
}

export async function cut(socket: Socket): Promise<void> {
  if (socket.closed) return
  await new Promise<void>((resolve) => {
    socket.once('close', () => resolve())
    socket.destroy()
  })
}

export function once(key: string): Record<string, string> {
  return { 'idempotency-key': key }
}
