import { Channel, type ChannelOptions } from './channel.ts'
import type { Op } from './operations.ts'
import { encode, type Message } from './protobuf.ts'
import { faultOf, isStaleLogin } from './refusals.ts'

export interface EtcdClientOptions extends ChannelOptions {
  /** The user, if etcd has authentication enabled. */
  readonly auth: { readonly username: string; readonly password: string } | undefined
}

export interface KeyValue {
  readonly key: string
  readonly value: Buffer
  /** The revision of its last put. */
  readonly revision: number
}

export interface Txn {
  readonly revision: number
  readonly succeeded: boolean
  /** What each operation read. */
  readonly results: readonly (readonly KeyValue[])[]
}

export interface Watch {
  /** The keys to watch: from the first, up to and not including the second. */
  readonly range: readonly [start: string, end: string]
  /** The first revision to report. */
  readonly from: number
  received(puts: readonly KeyValue[]): void
  ended(error: unknown): void
}

/** Asks the member for an answer on an idle stream. */
const PROGRESS = encode({ 3: '' })

/**
 * The few calls of etcd that a log needs. All rejections are a `LeaseholdError` that distinguishes
 * `refused` from `unknown`.
 */
export class EtcdClient {
  readonly #options: EtcdClientOptions
  readonly #channel: Channel
  #token: Promise<string> | undefined

  constructor(options: EtcdClientOptions) {
    const { endpoints, timeout } = options
    // With one member there is no next one to try.
    const memberTimeout = endpoints.length > 1 ? options.memberTimeout : timeout
    this.#options = { ...options, memberTimeout }
    this.#channel = new Channel(this.#options)
  }

  /** Reads at one revision that includes everything that was acknowledged before. */
  read(ops: readonly Op[]): Promise<Txn> {
    return this.#txn(encode({ 2: ops }), 'read')
  }

  /** Like `read`, for a large answer: it may take the whole timeout. */
  readLong(ops: readonly Op[]): Promise<Txn> {
    return this.#txn(encode({ 2: ops }), 'long')
  }

  /** Carries out all operations in one revision if all conditions are met, or none. */
  change(ops: readonly Op[], conditions: readonly Op[] = []): Promise<Txn> {
    return this.#txn(encode({ 1: conditions, 2: ops }), 'change')
  }

  /** Reports each put in a range. The watch ends if the member stops answering. */
  async watch({ range, from, received, ended }: Watch): Promise<{ close(): void }> {
    const { clock, memberTimeout, endpoints } = this.#options
    const request = encode({ 1: encode({ 1: range[0], 2: range[1], 3: from, 5: 1 }) })
    const headers = await this.#headers()
    let isAlive = true
    const receive = (answer: Message) => {
      isAlive = true
      if (answer.number(4) !== 0) throw new Error(`etcd ended the watch: ${answer.bytes(6)}`)
      const puts = answer.messages(11).map((event) => keyValue(event.message(2)))
      if (puts.length > 0) received(puts)
    }
    const fail = (error: Error) => {
      timer.cancel()
      ended(faultOf(error, endpoints))
    }
    const stream = this.#channel.stream(WATCH, request, headers, receive, fail)
    const wait = () => clock.timer(clock.now() + memberTimeout, () => clock.defer(check))
    const check = () => {
      if (!isAlive) return stream.fail(new Error(`no answer for ${memberTimeout} ms`))
      isAlive = false
      stream.write(PROGRESS)
      timer = wait()
    }
    let timer = wait()
    return stream
  }

  close(): void {
    this.#channel.close()
  }

  async #txn(request: Buffer, kind: 'change' | 'read' | 'long'): Promise<Txn> {
    const call = async () => this.#channel.call(TXN, request, await this.#headers(), kind)
    const again = (error: unknown) => {
      if (this.#token === undefined || !isStaleLogin(error)) throw error
      this.#token = undefined
      return call()
    }
    const answer = await call()
      .catch(again)
      .catch((error: Error) => {
        throw faultOf(error, this.#options.endpoints)
      })
    return {
      revision: answer.message(1).number(3),
      succeeded: answer.number(2) !== 0,
      results: answer.messages(3).map((each) => each.message(1).messages(2).map(keyValue)),
    }
  }

  /** With `hasleader`, a member without a leader refuses a call at once instead of waiting. */
  async #headers(): Promise<Readonly<Record<string, string>>> {
    const { auth } = this.#options
    if (auth === undefined) return { hasleader: 'true' }
    const request = encode({ 1: auth.username, 2: auth.password })
    this.#token ??= this.#channel
      .call(LOGIN, request, {}, 'read')
      .then((answer) => answer.bytes(2).toString())
    try {
      return { hasleader: 'true', token: await this.#token }
    } catch (error) {
      this.#token = undefined
      throw error
    }
  }
}

const TXN = '/etcdserverpb.KV/Txn'
const WATCH = '/etcdserverpb.Watch/Watch'
const LOGIN = '/etcdserverpb.Auth/Authenticate'

function keyValue(message: Message): KeyValue {
  return {
    key: message.bytes(1).toString(),
    value: message.bytes(5),
    revision: message.number(3),
  }
}
