import { invalid, show } from '../../port/index.ts'
import type { SnapshotParts } from '../snapshots.ts'

/** What is asked of a NATS client: a connection of `@nats-io/transport-node`, or of `nats` 2. */
export interface NatsClient {
  request(subject: string, payload: Uint8Array, options: { timeout: number }): Promise<NatsMessage>
  publish(subject: string, payload?: Uint8Array): void
  subscribe(
    subject: string,
    options: { callback: (error: Error | null, message: NatsMessage) => void },
  ): { unsubscribe(): void }
  readonly info?: { readonly max_payload: number } | undefined
}

export interface NatsMessage {
  readonly data: Uint8Array
  readonly reply?: string | undefined
  readonly headers?:
    | { readonly code: number; readonly description: string; get(name: string): string }
    | undefined
}

export interface StreamInfo {
  readonly config: Readonly<Record<string, unknown>> & { readonly num_replicas: number }
  readonly state: {
    readonly first_seq: number
    readonly last_seq: number
    readonly subjects?: Readonly<Record<string, number>>
  }
  readonly cluster?: { readonly replicas?: readonly { readonly active: number }[] }
}

/** JetStream by its JSON requests, so that a plain connection of any client library is enough. */
export class JetStream {
  readonly client: NatsClient
  readonly #timeout: number

  constructor(client: NatsClient, timeout: number) {
    if (typeof client?.request !== 'function' || typeof client.subscribe !== 'function') {
      throw invalid(`client is ${show(client)}: give what connect(…) of a NATS client returns`)
    }
    this.client = client
    this.#timeout = timeout
  }

  ask<Answer>(call: string, request: object = {}): Promise<Answer> {
    return this.#send(`$JS.API.${call}`, Buffer.from(JSON.stringify(request)))
  }

  /** Publishes to a subject of a stream, and returns the sequence number that it got. */
  async publish(subject: string, payload: Uint8Array): Promise<number> {
    return (await this.#send<{ seq: number }>(subject, payload)).seq
  }

  /** The parts of snapshots, each under a subject of its own in this stream. */
  partsIn(stream: string): SnapshotParts {
    return {
      names: async () => {
        const request = { subjects_filter: `${stream}.>` }
        const { state } = await this.ask<StreamInfo>(`STREAM.INFO.${stream}`, request)
        return Object.keys(state.subjects ?? {}).map((name) => name.slice(stream.length + 1))
      },
      put: (name, bytes) => this.publish(`${stream}.${name}`, bytes),
      get: async (name) => {
        const request = { last_by_subj: `${stream}.${name}` }
        const got = await this.ask<{ message: { data?: string } }>(
          `STREAM.MSG.GET.${stream}`,
          request,
        ).catch(unless(MESSAGE_NOT_FOUND))
        return got && Buffer.from(got.message.data ?? '', 'base64')
      },
      remove: async (names) => {
        for (const name of names) {
          await this.ask(`STREAM.PURGE.${stream}`, { filter: `${stream}.${name}` })
        }
      },
    }
  }

  async #send<Answer>(subject: string, payload: Uint8Array): Promise<Answer> {
    const { data } = await this.client.request(subject, payload, { timeout: this.#timeout })
    const { error, ...answer } = JSON.parse(Buffer.from(data).toString())
    if (error) throw Object.assign(new Error(error.description), { code: error.err_code })
    return answer
  }
}

export const STREAM_NOT_FOUND = 10_059
const MESSAGE_NOT_FOUND = 10_037

/** Turns one error of JetStream into `undefined`. */
export function unless(code: number): (error: unknown) => undefined {
  return (error) => {
    if ((error as { code?: unknown }).code !== code) throw error
    return undefined
  }
}
