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

type Scene = Awaited<ReturnType<typeof gatewayScene>>

/**
 * Registers an instance of a service at each address. With `die`, the second half stops to renew its
 * leases. `lost` has the times at which these ended.
 */
export async function massFailure(
  { registry, store }: Scene,
  service: string,
  addresses: readonly string[],
) {
  const half = addresses.length / 2
  const lost: number[] = []
  store.watch({ prefix: `services/${service}/dead-` }, (notice) => {
    if (notice.type !== 'events') return
    for (const { type } of notice.events) if (type === 'removed') lost.push(performance.now())
  })
  const leases: string[] = []
  for (const [at, address] of addresses.entries()) {
    if (at < half) await registry.register(service, { id: `alive-${at}`, address })
    else {
      const { key, value } = registry.entry(service, `dead-${at}`, { address })
      const granted = await store.grant({ holder: 'dead', ttl: 3000, claims: [{ key, value }] })
      if (granted.outcome === 'granted') leases.push(granted.lease)
    }
  }
  const heartbeat = setInterval(() => store.renew(leases).catch(() => {}), 300)
  return { lost, die: () => clearInterval(heartbeat) }
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
