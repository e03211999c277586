import { Redis } from 'ioredis'
import pg from 'pg'
import type { LeaseStore } from '../../../src/index.ts'
import { systemRandom } from '../../../src/port/index.ts'
import { postgresStore } from '../../../src/stores/postgres/index.ts'
import { redisStore } from '../../../src/stores/redis/index.ts'
import { Engine, type EngineSpec, POSTGRES, postgresUrl, REDIS } from '../../engines/index.ts'
import { afterFile } from '../../setup/after-file.ts'

/** A store on a real engine, isolated for each scene. */
export interface EngineStores {
  readonly name: string
  open(): Promise<LeaseStore>
}

function onEngine<Client>(
  spec: EngineSpec,
  connect: (port: number) => { client: Client; disconnect: () => Promise<unknown> },
  open: (client: Client, name: string) => Promise<LeaseStore>,
): EngineStores {
  // One engine for all scenes of a file, started on demand.
  let connected: Promise<Client> | undefined
  const start = async () => {
    const engine = await Engine.start(spec)
    const { client, disconnect } = connect(engine.port)
    afterFile(async () => {
      connected = undefined
      await disconnect()
      await engine.stop()
    })
    return client
  }
  return {
    name: spec.name,
    open: async () => {
      connected ??= start()
      return open(await connected, `scene_${systemRandom.id().replaceAll(/\W/g, '').toLowerCase()}`)
    },
  }
}

/**
 * The engines that decide about leases themselves. On all others a replica decides, independent of
 * the engine: the replica scene covers them.
 */
const all: readonly (readonly [EngineSpec, EngineStores])[] = [
  [
    REDIS,
    onEngine(
      REDIS,
      (port) => {
        const client = new Redis({ port, host: '127.0.0.1' })
        return { client, disconnect: async () => client.disconnect() }
      },
      (client, namespace) => redisStore(client, { namespace }),
    ),
  ],
  [
    POSTGRES,
    onEngine(
      POSTGRES,
      (port) => {
        const client = new pg.Pool({ connectionString: postgresUrl(port) })
        client.on('error', () => {})
        return { client, disconnect: () => client.end() }
      },
      (client, schema) => postgresStore(client, { schema }),
    ),
  ],
]

/** The installed engines. The tests of the stores report the missing ones. */
export const ENGINE_STORES = all
  .filter(([spec]) => spec.program !== undefined)
  .map(([, stores]) => stores)
