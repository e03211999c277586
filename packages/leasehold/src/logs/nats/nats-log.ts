import type { Log } from '../../log/index.ts'
import type { LeaseStore } from '../../port/index.ts'
import { type LogEngine, openLog } from '../engine-log.ts'
import { faultBy } from '../faults.ts'
import { type StoreOptions, storeOn } from '../store-on.ts'
import { FAULTS, JetStream, type NatsClient } from './client/index.ts'
import { followStream } from './follower.ts'
import { type NatsLogOptions, promisesOf, type Settings, settingsOf } from './options.ts'
import { checkLeads, ensureStream, partsIn, type StreamInfo } from './streams.ts'

/** Opens a log in a JetStream stream, and creates it if needed. Closing the log keeps the client open. */
export async function natsLog(client: NatsClient, options: NatsLogOptions = {}): Promise<Log> {
  const settings = settingsOf(options)
  const jetStream = new JetStream(client, settings.timeout)
  return openLog('NATS', settings, faultBy(FAULTS, 'NATS'), () => engineOf(jetStream, settings))
}

/** Opens a store on such a log: this process runs a replica of the kernel. */
export function natsStore(
  client: NatsClient,
  options: NatsLogOptions & StoreOptions = {},
): Promise<LeaseStore> {
  return storeOn('nats', options, (own) => natsLog(client, own))
}

async function engineOf(jetStream: JetStream, settings: Settings): Promise<LogEngine> {
  const { name, replicas } = settings
  const open = () => ensureStream(jetStream, name, `${name}.log`, replicas)
  const info = () => jetStream.ask<StreamInfo>(`STREAM.INFO.${name}`)
  const snapshots = `${name}_snapshots`
  await ensureStream(jetStream, snapshots, `${snapshots}.>`, replicas)
  return {
    promises: promisesOf(settings, await open(), jetStream.client.info),
    parts: partsIn(jetStream, snapshots),
    append: (entry) => jetStream.publish(`${name}.log`, entry),
    async follow(feed) {
      // Creates a deleted stream again. It then ends before all positions of the old one.
      const found = await open()
      const { first_seq, last_seq } = found.state
      if (feed.after > last_seq) checkLeads(found)
      if (feed.continuesIn(first_seq - 1, last_seq)) {
        await followStream(jetStream, name, feed, settings)
      }
    },
    tail: async () => (await info()).state.last_seq,
    async trim(through) {
      const { first_seq, last_seq } = (await info()).state
      // A purge beyond the end would move the end.
      const seq = Math.min(through, last_seq) + 1
      if (seq > first_seq) await jetStream.ask(`STREAM.PURGE.${name}`, { seq })
    },
  }
}
