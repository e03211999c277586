import type { Log } from '../../log/index.ts'
import { LeaseholdError, type LeaseStore } from '../../port/index.ts'
import { type ReplicaStoreOptions, replicaStore } from '../../replica/index.ts'
import { type LogEngine, openLog } from '../engine-log.ts'
import type { SnapshotParts } from '../snapshots.ts'
import { JetStream, type NatsClient, STREAM_NOT_FOUND, type StreamInfo, unless } from './client.ts'
import { faultOf } from './faults.ts'
import { Consumer } from './follower.ts'
import { type NatsLogOptions, promisesOf, type Settings, settingsOf } from './options.ts'

/** A leader that has not heard from a majority for so long may have been replaced. */
const CONTACT_NS = 3_000_000_000

/** A log in a JetStream stream, which is created if it does not exist. The client stays the caller's. */
export async function natsLog(client: NatsClient, options: NatsLogOptions = {}): Promise<Log> {
  const settings = settingsOf(options)
  const jetStream = new JetStream(client, settings.timeout)
  return openLog('NATS', settings, faultOf, async () => {
    const snapshots = `${settings.name}_snapshots`
    await ensure(jetStream, snapshots, `${snapshots}.>`, settings.replicas)
    return engineOf(jetStream, settings, jetStream.partsIn(snapshots))
  })
}

/** A store on such a log: this process runs a replica of the kernel. */
export async function natsStore(
  client: NatsClient,
  options: NatsLogOptions & ReplicaStoreOptions = {},
): Promise<LeaseStore> {
  return replicaStore(await natsLog(client, options), options)
}

async function engineOf(
  jetStream: JetStream,
  settings: Settings,
  parts: SnapshotParts,
): Promise<LogEngine> {
  const { name, clock, random } = settings
  const open = () => ensure(jetStream, name, `${name}.log`, settings.replicas)
  const info = () => jetStream.ask<StreamInfo>(`STREAM.INFO.${name}`)
  const { num_replicas } = (await open()).config
  return {
    parts,
    promises: promisesOf(settings, num_replicas, jetStream.client.info?.max_payload ?? 1 << 20),
    append: (entry) => jetStream.publish(`${name}.log`, entry),
    async follow(feed) {
      // A stream that was deleted is made again: it ends before everything that was in it.
      const { first_seq, last_seq } = (await open()).state
      if (feed.after > last_seq) feed.end({ cause: 'ahead', tail: last_seq })
      else if (feed.after + 1 < first_seq) feed.end({ cause: 'trimmed' })
      else await new Consumer(jetStream, feed, clock, random).start(name)
    },
    async tail() {
      const { state, cluster } = await info()
      const others = cluster?.replicas ?? []
      const inContact = 1 + others.filter(({ active }) => active < CONTACT_NS).length
      if (2 * inContact > others.length + 1) return state.last_seq
      const message = `the leader of the stream hears from ${inContact - 1} of ${others.length} others`
      throw new LeaseholdError('unknown-outcome', `${message}: it may have been replaced`)
    },
    async trim(through) {
      const { first_seq, last_seq } = (await info()).state
      // A purge beyond the end would move the end.
      const seq = Math.min(through, last_seq) + 1
      if (seq > first_seq) await jetStream.ask(`STREAM.PURGE.${name}`, { seq })
    },
  }
}

/** The stream, created if it is missing. One that could drop entries by itself is refused. */
async function ensure(
  jetStream: JetStream,
  name: string,
  subject: string,
  replicas: number,
): Promise<StreamInfo> {
  const wanted = { name, subjects: [subject], storage: 'file', retention: 'limits', max_age: 0 }
  const created = { ...wanted, num_replicas: replicas, discard: 'new' }
  const info =
    (await jetStream.ask<StreamInfo>(`STREAM.INFO.${name}`).catch(unless(STREAM_NOT_FOUND))) ??
    (await jetStream.ask<StreamInfo>(`STREAM.CREATE.${name}`, created))
  const { config } = info
  for (const [setting, value] of Object.entries({ ...wanted, discard: 'new' })) {
    if (String(config[setting]) === String(value)) continue
    throw new LeaseholdError(
      'unsupported',
      `the stream ${name} has ${setting} '${config[setting]}', and a log needs '${value}': use another name, or change the stream`,
    )
  }
  return info
}
