/**
 * Durable lock and unlock through the server, against etcd's own Lock and Unlock over gRPC: one
 * connection each, with 64 in flight, on keys that nobody else wants and with one lease for all.
 *
 * What is unfair: etcd keeps its state by Raft, ready for further members, and its Lock makes
 * several requests of its own; it is Debian's etcd 3.4; and grpc-js costs the client more than our
 * stream does. Its messages are written here by hand, so that no schema library adds to that.
 */
import { type ClientOptions, credentials, Client as GrpcClient } from '@grpc/grpc-js'
import { startEtcd } from '../engines.js'
import { atLeast, type Row, row } from '../rows.js'
import { type Pair, pairsPerSecond, startOurs } from './pairs.js'

const ROUNDS = 5
const IN_FLIGHT = 64
const PAIRS = 20_000
const ETCD_PAIRS = 1280

/** A field of a message: bytes with their length, or an integer as it was received. */
const bytesField = (field: number, bytes: Buffer) =>
  Buffer.concat([Buffer.from([(field << 3) | 2]), varint(bytes.length), bytes])
const integerField = (field: number, raw: Buffer) => Buffer.concat([Buffer.from([field << 3]), raw])

function varint(value: number): Buffer {
  const bytes: number[] = []
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    bytes.push(rest < 128 ? rest : (rest % 128) | 0x80)
    if (rest < 128) return Buffer.from(bytes)
  }
}

/** The bytes of a field; of an integer those that it is written in. */
function fieldOf(message: Buffer, wanted: number): Buffer {
  for (let at = 0; at < message.length; ) {
    const tag = message[at++]!
    let end = at
    while (message[end++]! & 0x80);
    if ((tag & 7) === 0) {
      if (tag >> 3 === wanted) return message.subarray(at, end)
      at = end
      continue
    }
    let length = 0
    for (let byte = end - 1; byte >= at; byte--) length = length * 128 + (message[byte]! & 0x7f)
    if (tag >> 3 === wanted) return message.subarray(end, end + length)
    at = end + length
  }
  throw new Error(`etcd's answer has no field ${wanted}`)
}

class Etcd {
  readonly #client: GrpcClient

  constructor(port: number) {
    const options: ClientOptions = {}
    this.#client = new GrpcClient(`127.0.0.1:${port}`, credentials.createInsecure(), options)
  }

  async pair(): Promise<Pair> {
    const granted = await this.#call('/etcdserverpb.Lease/LeaseGrant', integerField(1, varint(600)))
    const lease = integerField(2, fieldOf(granted, 2))
    return async (key) => {
      const request = Buffer.concat([bytesField(1, Buffer.from(key)), lease])
      const locked = await this.#call('/v3lockpb.Lock/Lock', request)
      await this.#call('/v3lockpb.Lock/Unlock', bytesField(1, fieldOf(locked, 2)))
    }
  }

  close(): void {
    this.#client.close()
  }

  #call(path: string, request: Buffer): Promise<Buffer> {
    const same = (bytes: Buffer) => bytes
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(path, same, same, request, (error, answer) => {
        if (error) reject(error)
        else resolve(answer!)
      })
    })
  }
}

const rows: Row[] = []
const engine = await startEtcd()
if (engine) {
  const ours = await startOurs()
  const etcd = new Etcd(engine.port)
  const theirPair = await etcd.pair()
  const mine: number[] = []
  const theirs: number[] = []
  for (let round = -1; round < ROUNDS; round++) {
    const own = await pairsPerSecond(ours.store, IN_FLIGHT, PAIRS)
    const other = await pairsPerSecond(theirPair, IN_FLIGHT, ETCD_PAIRS)
    if (round < 0) continue
    mine.push(own)
    theirs.push(other)
  }
  const ratios = mine.map((value, index) => value / theirs[index]!)
  const what = `${IN_FLIGHT} in flight`
  rows.push(
    row(`durable claim + release beside etcd, ${what}`, 'pairs/s', mine),
    row(`etcd Lock + Unlock, ${what}`, 'pairs/s', theirs),
    row(`claim + release against etcd, ${what}`, 'x', ratios, atLeast(20)),
  )
  etcd.close()
  await ours.end()
  await engine.end()
}
console.log(JSON.stringify(rows))
