import { expect, it } from 'vitest'
import type { LogPromises } from '../../../src/log/index.ts'
import { openLog } from '../../../src/logs/engine-log.ts'
import { faultBy } from '../../../src/logs/faults.ts'
import { logSettings } from '../../../src/logs/options/options.ts'
import { ZookeeperLog } from '../../../src/logs/zookeeper/zookeeper-log.ts'
import { FakeEnsemble, LaggingClient } from './lagging-server.ts'

const PROMISES: LogPromises = {
  engine: 'zookeeper',
  durability: 'majority',
  failoverLoses: false,
  entryBytes: 1000,
  timeout: 1000,
  notes: [],
}

/** Two logs, each on its own server. A server is behind until something is written through it. */
async function openTwo() {
  const ensemble = new FakeEnsemble()
  const open = () => {
    const log = new ZookeeperLog(new LaggingClient(ensemble), '/log', PROMISES)
    return openLog('ZooKeeper', logSettings('zookeeper', {}), faultBy([], 'ZooKeeper'), () =>
      log.open(),
    )
  }
  return { writer: await open(), reader: await open() }
}

it('loads the newest snapshot from a server that is behind', async () => {
  const { writer, reader } = await openTwo()
  await writer.saveSnapshot({ position: 3, chunks: [Buffer.from('old')] })
  expect(await reader.loadSnapshot()).toMatchObject({ position: 3 })
  await writer.saveSnapshot({ position: 5, chunks: [Buffer.from('new'), Buffer.from('est')] })
  const snapshot = await reader.loadSnapshot()
  expect(snapshot?.position).toBe(5)
  expect(snapshot?.chunks.map(String)).toEqual(['new', 'est'])
})

it('has a tail with every acknowledged entry, from a server that is behind', async () => {
  const { writer, reader } = await openTwo()
  for (let count = 1; count <= 3; count++) {
    expect(await writer.append(Buffer.from('a'))).toBe(count)
    expect(await reader.tail()).toBe(count)
  }
})
