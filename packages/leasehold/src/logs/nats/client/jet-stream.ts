import { invalid, show } from '../../../port/index.ts'

/** The methods that a NATS client needs: a connection of `@nats-io/transport-node`, or of `nats` 2. */
export interface NatsClient {
  request(subject: string, payload: Uint8Array, options: { timeout: number }): Promise<NatsMessage>
  publish(subject: string, payload?: Uint8Array): void
  subscribe(
    subject: string,
    options: { callback: (error: Error | null, message: NatsMessage) => void },
  ): { unsubscribe(): void }
  /** What the server sent about itself when the client connected. */
  readonly info?: ServerInfo | undefined
}

export interface ServerInfo {
  readonly max_payload: number
  readonly version: string
}

export interface NatsMessage {
  readonly data: Uint8Array
  readonly reply?: string | undefined
  readonly headers?:
    | { readonly code: number; readonly description: string; get(name: string): string }
    | undefined
}

/** Uses JetStream by its JSON requests, so that a plain connection of any client library is enough. */
export class JetStream {
  readonly client: NatsClient
  readonly #timeout: number

  constructor(client: NatsClient, timeout: number) {
    if (typeof client?.request !== 'function' || typeof client.subscribe !== 'function') {
      throw invalid(`client is ${show(client)}: use what connect(…) of a NATS client returns`)
    }
    this.client = client
    this.#timeout = timeout
  }

  ask<Answer>(call: string, request: object = {}): Promise<Answer> {
    return this.#send(`$JS.API.${call}`, Buffer.from(JSON.stringify(request)))
  }

  /** Like `ask`, but returns `undefined` for this error code. */
  askUnless<Answer>(code: number, call: string, request?: object): Promise<Answer | undefined> {
    return this.ask<Answer>(call, request).catch((error: unknown) => {
      if ((error as { code?: unknown }).code !== code) throw error
      return undefined
    })
  }

  /** Publishes to a subject of a stream, and returns the sequence number of the message. */
  async publish(subject: string, payload: Uint8Array): Promise<number> {
    return (await this.#send<{ seq: number }>(subject, payload)).seq
  }

  async #send<Answer>(subject: string, payload: Uint8Array): Promise<Answer> {
    const { data } = await this.client.request(subject, payload, { timeout: this.#timeout })
    const { error, ...answer } = JSON.parse(Buffer.from(data).toString())
    if (error) throw Object.assign(new Error(error.description), { code: error.err_code })
    return answer
  }
}
