import { LeaseholdError } from '../../port/index.ts'
import type { SnapshotParts } from '../snapshots.ts'
import type { JetStream } from './client/index.ts'

const STREAM_NOT_FOUND = 10_059
const MESSAGE_NOT_FOUND = 10_037
/** A leader that has no contact with a majority for so long may have been replaced. */
const CONTACT_NS = 3_000_000_000

export interface StreamInfo {
  readonly config: Readonly<Record<string, unknown>> & { readonly num_replicas: number }
  readonly state: {
    readonly first_seq: number
    readonly last_seq: number
    readonly subjects?: Readonly<Record<string, number>>
  }
  readonly cluster?: { readonly replicas?: readonly { readonly active: number }[] }
}

/** Creates the stream if it is missing. Refuses a stream that could drop entries by itself. */
export async function ensureStream(
  jetStream: JetStream,
  name: string,
  subject: string,
  num_replicas: number,
): Promise<StreamInfo> {
  const fixed = { storage: 'file', retention: 'limits', max_age: 0, discard: 'new' }
  const wanted = { name, subjects: [subject], ...fixed }
  const info =
    (await jetStream.askUnless<StreamInfo>(STREAM_NOT_FOUND, `STREAM.INFO.${name}`)) ??
    (await jetStream.ask<StreamInfo>(`STREAM.CREATE.${name}`, { ...wanted, num_replicas }))
  for (const [setting, value] of Object.entries(wanted)) {
    const found = String(info.config[setting])
    if (found === String(value)) continue
    const wrong = `the stream ${name} has ${setting} '${found}', but a log needs '${value}'`
    throw new LeaseholdError('unsupported', `${wrong}: use another name, or change the stream`)
  }
  return info
}

/** Refuses an answer of a leader that has contact with too few others, and may have been replaced. */
export function checkLeads({ cluster }: StreamInfo): void {
  const others = cluster?.replicas ?? []
  const active = others.filter((server) => server.active < CONTACT_NS).length
  if (2 * (active + 1) > others.length + 1) return
  const message = `the leader of the stream has contact with ${active} of ${others.length} other servers`
  throw new LeaseholdError('unknown-outcome', `${message}: it may have been replaced`)
}

/** The parts of snapshots, each under its own subject in this stream. */
export function partsIn(jetStream: JetStream, stream: string): SnapshotParts {
  return {
    names: async () => {
      // If the list includes this message, it is not from a replaced server. The message is removed
      // with the parts of older snapshots.
      const mark = await jetStream.publish(`${stream}.0.read`, new Uint8Array())
      const request = { subjects_filter: `${stream}.>` }
      const { state } = await jetStream.ask<StreamInfo>(`STREAM.INFO.${stream}`, request)
      if (state.last_seq < mark) throw new Error('the server that answered was replaced')
      return Object.keys(state.subjects ?? {}).map((name) => name.slice(stream.length + 1))
    },
    put: (name, bytes) => jetStream.publish(`${stream}.${name}`, bytes),
    get: async (name) => {
      const request = { last_by_subj: `${stream}.${name}` }
      const got = await jetStream.askUnless<{ message: { data?: string } }>(
        MESSAGE_NOT_FOUND,
        `STREAM.MSG.GET.${stream}`,
        request,
      )
      return got && Buffer.from(got.message.data ?? '', 'base64')
    },
    remove: (name) => jetStream.ask(`STREAM.PURGE.${stream}`, { filter: `${stream}.${name}` }),
  }
}
