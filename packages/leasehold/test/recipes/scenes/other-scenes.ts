import { memoryStore as builtMemoryStore } from 'leasehold/memory'
import { createServer } from 'leasehold-server'
import { MemoryLog } from '../../../src/log/index.ts'
import { systemClock } from '../../../src/port/index.ts'
import { replicaStore } from '../../../src/replica/index.ts'
import { fileStore } from '../../../src/stores/file/index.ts'
import { remoteStore } from '../../../src/stores/remote/index.ts'
import { MemoryDisk } from '../../stores/file/memory-disk.ts'
import { ENGINE_STORES } from './engine-scenes.ts'
import { type Scene, type SceneKind, scene, virtual } from './one-scene.ts'

/** Mutation tests skip these: most take real time, and a recipe cannot distinguish them. */
export const OTHER_SCENES: readonly SceneKind[] = [
  {
    name: 'file',
    make: () => virtual((clock) => fileStore('', { disk: new MemoryDisk(), clock })),
  },
  {
    name: 'a replica of a log',
    make: () => virtual((clock) => replicaStore(new MemoryLog().open(), { clock, coalesce: 0 })),
  },
  { name: 'a server, over the network', make: served },
  ...ENGINE_STORES.map(({ name, open }) => ({
    name,
    make: async () => scene(await open(), systemClock, sleep),
  })),
]

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => void systemClock.timer(systemClock.now() + ms, resolve, true))
}

async function served(): Promise<Scene> {
  // The server uses the built package, so its store must too.
  const kept = builtMemoryStore()
  const server = await createServer({ store: kept, port: 0 })
  const made = scene(await remoteStore(server.url), systemClock, sleep)
  const close = async () => {
    await made.close()
    await server.close()
    await kept.close()
  }
  return { ...made, close }
}
