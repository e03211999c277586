import { createServer as createHttpServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { Leasehold } from 'leasehold'
import { memoryStore } from 'leasehold/memory'
import { afterFile } from '../../../leasehold/test/setup/after-file.ts'
import { parseRight } from '../../src/access/index.ts'
import { createServer, type ServerOptions } from '../../src/index.ts'

/** A file of examples/discovery. */
export const exampleFile = (name: string) =>
  fileURLToPath(new URL(`../../../../examples/discovery/${name}`, import.meta.url))

/** A real server with gateways on a real clock, and a client that registers instances in its store. */
export async function gatewayScene(
  gateways: ServerOptions['gateways'],
  options: Partial<ServerOptions> = {},
) {
  const store = memoryStore()
  const start = (port: number) => createServer({ store, port, gateways, ...options })
  let server = await start(0)
  const port = Number(new URL(server.url).port)
  const { registry } = await Leasehold.open(store, { holder: 'near' })
  afterFile(async () => {
    await server.close()
    await store.close()
  })
  return {
    store,
    registry,
    url: server.url,
    get server() {
      return server
    },
    createToken: async (name: string, ...rights: string[]) =>
      server.access.tokens.create({ name, rights: rights.map(parseRight) }),
    restart: async (whileDown: () => Promise<void>) => {
      await server.close()
      await whileDown()
      server = await start(port)
    },
  }
}

/** A process that others find: it listens on a free port of 127.0.0.1. */
export async function listening(answer: RequestListener): Promise<string> {
  const server = createHttpServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  afterFile(() => {
    server.close()
    server.closeAllConnections()
  })
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}
