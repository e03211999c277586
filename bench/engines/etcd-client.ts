/**
 * The few etcd calls that we measure, over gRPC. The messages are encoded by hand, so that no schema
 * library adds to the cost of the client.
 */
import { credentials, Client as GrpcClient } from '@grpc/grpc-js'

/** An integer in etcd's encoding. */
export type Raw = Buffer

export interface KeepAlives {
  /** Resolves when etcd has answered: true if the lease is alive. */
  renew(lease: Raw): Promise<boolean>
  end(): void
}

export class EtcdClient {
  readonly #client: GrpcClient

  constructor(port: number) {
    this.#client = new GrpcClient(`127.0.0.1:${port}`, credentials.createInsecure(), {})
  }

  /** Grants a lease. */
  async grant(seconds: number): Promise<Raw> {
    const answer = await this.#call('/etcdserverpb.Lease/LeaseGrant', integer(1, varint(seconds)))
    return fieldOf(answer, 2)!
  }

  /** Puts a key that is deleted with its lease. */
  async put(key: string, lease: Raw): Promise<void> {
    const request = [bytes(1, Buffer.from(key)), bytes(2, Buffer.from('x')), integer(3, lease)]
    await this.#call('/etcdserverpb.KV/Put', Buffer.concat(request))
  }

  /** Puts a key that must not exist, in a transaction. Returns the revision. */
  async take(key: string, value: string, lease: Raw): Promise<Raw> {
    const name = bytes(1, Buffer.from(key))
    const isFree = bytes(1, Buffer.concat([integer(2, varint(1)), bytes(3, Buffer.from(key))]))
    const put = bytes(2, Buffer.concat([name, bytes(2, Buffer.from(value)), integer(3, lease)]))
    const answer = await this.#call('/etcdserverpb.KV/Txn', Buffer.concat([isFree, bytes(2, put)]))
    if (!fieldOf(answer, 2)) throw new Error('not locked')
    return fieldOf(fieldOf(answer, 1)!, 3)!
  }

  /** Deletes a key in a transaction, if it was put at this revision. */
  async free(key: string, revision: Raw): Promise<void> {
    const name = Buffer.from(key)
    const compare = [integer(2, varint(1)), bytes(3, name), integer(5, revision)]
    const isOwn = bytes(1, Buffer.concat(compare))
    const remove = bytes(3, bytes(1, name))
    const answer = await this.#call(
      '/etcdserverpb.KV/Txn',
      Buffer.concat([isOwn, bytes(2, remove)]),
    )
    if (!fieldOf(answer, 2)) throw new Error('not unlocked')
  }

  /** The number of keys with this prefix. */
  async count(prefix: string): Promise<number> {
    const from = Buffer.from(prefix)
    const to = Buffer.from(prefix)
    to[to.length - 1]! += 1
    const request = Buffer.concat([bytes(1, from), bytes(2, to), integer(9, varint(1))])
    const count = fieldOf(await this.#call('/etcdserverpb.KV/Range', request), 4)
    return count ? numberOf(count) : 0
  }

  /** The revision of the last change. */
  async revision(): Promise<number> {
    const header = fieldOf(await this.#call('/etcdserverpb.KV/Range', bytes(1, ANY_KEY)), 1)!
    return numberOf(fieldOf(header, 3)!)
  }

  /** Ends a lease and deletes its keys. */
  async revoke(lease: Raw): Promise<void> {
    await this.#call('/etcdserverpb.Lease/LeaseRevoke', integer(1, lease))
  }

  /** Returns the key that represents the lock. */
  async lock(name: string, lease: Raw): Promise<Buffer> {
    const request = Buffer.concat([bytes(1, Buffer.from(name)), integer(2, lease)])
    return fieldOf(await this.#call('/v3lockpb.Lock/Lock', request), 2)!
  }

  async unlock(key: Buffer): Promise<void> {
    await this.#call('/v3lockpb.Lock/Unlock', bytes(1, key))
  }

  /** Opens one stream. Answers arrive in the order of the requests. */
  keepAlives(): KeepAlives {
    const path = '/etcdserverpb.Lease/LeaseKeepAlive'
    const stream = this.#client.makeBidiStreamRequest(path, same, same)
    const waiting: ((lives: boolean) => void)[] = []
    let next = 0
    stream.on('data', (answer: Buffer) => {
      waiting[next++]!(fieldOf(answer, 3) !== undefined)
      if (next === waiting.length) waiting.length = next = 0
    })
    stream.on('error', () => {})
    return {
      renew: (lease) =>
        new Promise((resolve) => {
          waiting.push(resolve)
          stream.write(integer(1, lease))
        }),
      end: () => stream.cancel(),
    }
  }

  /** Calls `gone` for each deleted key with this prefix. */
  watchDeletes(prefix: string, gone: (key: string) => void): Promise<void> {
    const to = Buffer.from(prefix)
    to[to.length - 1]! += 1
    const create = Buffer.concat([bytes(1, Buffer.from(prefix)), bytes(2, to)])
    const stream = this.#client.makeBidiStreamRequest('/etcdserverpb.Watch/Watch', same, same)
    stream.on('error', () => {})
    stream.write(bytes(1, create))
    return new Promise((resolve) => {
      stream.on('data', (answer: Buffer) => {
        if (fieldOf(answer, 3)) resolve()
        for (const event of fieldsOf(answer, 11)) {
          const isDelete = fieldOf(event, 1) !== undefined
          if (isDelete) gone(String(fieldOf(fieldOf(event, 2)!, 1)))
        }
      })
    })
  }

  close(): void {
    this.#client.close()
  }

  #call(path: string, request: Buffer): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(path, same, same, request, (error, answer) => {
        if (error) reject(error)
        else resolve(answer!)
      })
    })
  }
}

const ANY_KEY = Buffer.from('any')

const same = (message: Buffer) => message

const bytes = (field: number, value: Buffer) =>
  Buffer.concat([Buffer.from([(field << 3) | 2]), varint(value.length), value])
const integer = (field: number, raw: Raw) => Buffer.concat([Buffer.from([field << 3]), raw])

function varint(value: number): Raw {
  const written: number[] = []
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    written.push(rest < 128 ? rest : (rest % 128) | 0x80)
    if (rest < 128) return Buffer.from(written)
  }
}

function numberOf(raw: Raw): number {
  return raw.reduceRight((sum, byte) => sum * 128 + (byte & 0x7f), 0)
}

/** The bytes of a field; for an integer, its encoding. Zero is not encoded at all. */
function fieldOf(message: Buffer, wanted: number): Buffer | undefined {
  return fieldsOf(message, wanted)[0]
}

function fieldsOf(message: Buffer, wanted: number): Buffer[] {
  const found: Buffer[] = []
  for (let at = 0; at < message.length; ) {
    const tag = message[at++]!
    let end = at
    while (message[end++]! & 0x80);
    const head = message.subarray(at, end)
    const value = (tag & 7) === 0 ? head : message.subarray(end, end + numberOf(head))
    at = (tag & 7) === 0 ? end : end + value.length
    if (tag >> 3 === wanted) found.push(value)
  }
  return found
}
