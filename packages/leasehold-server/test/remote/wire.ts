import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/** A proxy between a client and a server that can cut the connection or lose the server's answers. */
export class Wire {
  url = ''
  /** How many connections were ever made. */
  connections = 0
  /** What the server sends is dropped. */
  deaf = false
  readonly #target: URL
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  constructor(target: string) {
    this.#target = new URL(target)
    this.#server = createServer((client) => this.#join(client))
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
    return this
  }

  /** Breaks every connection, as a reset does. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  close(): void {
    this.#server.close()
    this.cut()
  }

  #join(client: Socket): void {
    this.connections++
    const server = connect(Number(this.#target.port), this.#target.hostname)
    for (const socket of [client, server]) {
      this.#sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => {})
      socket.on('close', () => {
        this.#sockets.delete(socket)
        client.destroy()
        server.destroy()
      })
    }
    client.pipe(server)
    server.on('data', (bytes) => {
      if (!this.deaf) client.write(bytes)
    })
  }
}
