import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

export type Direction = 'up' | 'down'

/** Stands between a client and a server, and breaks the connection after a number of bytes. */
export class CutWire {
  url = ''
  /** Connections that are open now. */
  connections = 0
  readonly #port: number
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #cut: { readonly direction: Direction; left: number } | undefined

  constructor(target: string) {
    this.#port = Number(new URL(target).port)
    this.#server = createServer((client) => this.#join(client))
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
    return this
  }

  /** Whether the connection is yet to break. */
  get isArmed(): boolean {
    return this.#cut !== undefined
  }

  /** Breaks the connection after this many more bytes to the server, or from it. */
  cutAfter(direction: Direction, bytes: number): void {
    this.#cut = { direction, left: bytes }
  }

  disarm(): void {
    this.#cut = undefined
  }

  cut(): void {
    this.disarm()
    for (const socket of this.#sockets) socket.destroy()
  }

  close(): void {
    this.#server.close()
    this.cut()
  }

  #join(client: Socket): void {
    const server = connect(this.#port, '127.0.0.1')
    this.connections++
    let isOpen = true
    for (const socket of [client, server]) {
      this.#sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => {})
      socket.on('close', () => {
        this.#sockets.delete(socket)
        client.destroy()
        server.destroy()
        if (isOpen) this.connections--
        isOpen = false
      })
    }
    client.on('data', (bytes) => this.#carry('up', bytes, server, client))
    server.on('data', (bytes) => this.#carry('down', bytes, client, server))
  }

  #carry(direction: Direction, bytes: Buffer, to: Socket, from: Socket): void {
    const cut = this.#cut
    if (cut?.direction !== direction || bytes.length <= cut.left) {
      to.write(bytes)
      if (cut?.direction === direction) cut.left -= bytes.length
      return
    }
    this.disarm()
    // What is before the cut arrives; then both ends see that the connection is gone.
    to.end(bytes.subarray(0, cut.left), () => to.destroy())
    from.destroy()
  }
}
