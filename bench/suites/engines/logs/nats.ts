/** Leases on a JetStream log, against creating and deleting a key in NATS' key-value store. */
import { Kvm } from '@nats-io/kv'
import { connect } from '@nats-io/transport-node'
import { natsStore } from 'leasehold/nats'
import { startNats } from '../../../engines/start.js'
import type { Row } from '../../../measure/rows.js'
import { compareLog } from './compare-log.js'

const rows: Row[] = []
const engine = await startNats()
if (engine) {
  const [mine, theirs] = [
    await connect({ port: engine.port }),
    await connect({ port: engine.port }),
  ]
  const kv = await new Kvm(theirs).create('locks')
  rows.push(
    ...(await compareLog({
      engine: 'NATS',
      store: await natsStore(mine),
      rawName: 'KV create + delete',
      raw: async (key) => {
        await kv.create(key, 'owner')
        await kv.delete(key)
      },
      pids: [engine.pid],
      runs: [
        [64, 20_000, 5000, 8],
        [512, 40_000, 5000, undefined],
      ],
    })),
  )
  await mine.close()
  await theirs.close()
  await engine.end()
}
console.log(JSON.stringify(rows))
