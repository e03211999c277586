import { Agent, createServer as createHttpServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterFile } from '../../../../leasehold/test/setup/after-file.ts'

/** One process with many backends, each at its own loopback address, which it can kill. */
export class Backends {
  readonly #server = createHttpServer((request, response) => {
    // HAProxy opens a connection for each request, so that the dead can refuse it.
    response.setHeader('connection', 'close')
    response.end(request.socket.localAddress!)
  })
  readonly dead = new Set<string>()
  /** Where connections to the dead went. */
  readonly refused: string[] = []
  port = 0

  async start(): Promise<this> {
    this.#server.on('connection', (socket) => {
      if (!this.dead.has(socket.localAddress!)) return
      this.refused.push(socket.localAddress!)
      socket.resetAndDestroy()
    })
    await new Promise<void>((resolve) => this.#server.listen(0, '0.0.0.0', resolve))
    this.port = (this.#server.address() as AddressInfo).port
    afterFile(() => this.#server.close())
    return this
  }
}

export const addressOf = (at: number) => `127.1.${at >> 8}.${at & 255}`

/** A request on a connection of its own. */
export function ask(url: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const sent = get(url, { agent: new Agent({ keepAlive: false }) }, (response) => {
      let body = ''
      response.on('data', (chunk) => (body += chunk))
      response.on('end', () => resolve({ status: response.statusCode!, body }))
    })
    sent.on('error', reject)
    sent.setTimeout(10_000, () => sent.destroy(new Error('no answer')))
  })
}
