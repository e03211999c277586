import type { Random } from '../../port/index.ts'
import {
  type Op,
  type RangeOp,
  readTimeToLive,
  readTxn,
  type TimeToLive,
  type Txn,
  type TxnAnswer,
  writeLeaseGrant,
  writeLeaseId,
  writeTimeToLive,
  writeTxn,
} from './messages.ts'
import { isFault, type Transport } from './transport.ts'

const TXN = '/etcdserverpb.KV/Txn'
const GRANT = '/etcdserverpb.Lease/LeaseGrant'
const REVOKE = '/etcdserverpb.Lease/LeaseRevoke'
const TIME_TO_LIVE = '/etcdserverpb.Lease/LeaseTimeToLive'

/** The longest that an etcd lease can live, in seconds: 285 years stand for ever. */
const FOR_EVER = 9_000_000_000

/** So many operations are in one transaction at most, or in one within it. */
const OPS_MOST = 60

/** etcd's calls that are used here, each as a function. */
export class Api {
  readonly #transport: Transport
  readonly #random: Random

  constructor(transport: Transport, random: Random) {
    this.#transport = transport
    this.#random = random
  }

  /** `repeatable`: being carried out twice does no harm, and gives the same answer. */
  async txn(txn: Txn, repeatable: boolean): Promise<TxnAnswer> {
    return readTxn(await this.#transport.call(TXN, writeTxn(txn), repeatable))
  }

  /** Reads, all at one revision, however many there are. */
  async read(ranges: readonly RangeOp[]): Promise<TxnAnswer> {
    return flat(
      await this.txn({ compare: [], success: nested(ranges), failure: [] }, true),
      ranges.length,
    )
  }

  /** A new etcd lease, which nobody else knows. Its number is ours, so that asking twice is one. */
  async grantLease(ms: number): Promise<number> {
    const number = 1 + Math.floor(this.#random.next() * (Number.MAX_SAFE_INTEGER - 1))
    const seconds = ms === Infinity ? FOR_EVER : Math.max(Math.ceil(ms / 1000), 1)
    try {
      await this.#transport.call(GRANT, writeLeaseGrant(number, seconds), true)
    } catch (error) {
      // The first of two calls was carried out though its answer was lost.
      if (!isFault(error, 'present')) throw error
    }
    return number
  }

  async revokeLease(number: number): Promise<void> {
    try {
      await this.#transport.call(REVOKE, writeLeaseId(number), true)
    } catch (error) {
      if (!isFault(error, 'absent')) throw error
    }
  }

  /** In the background: what is not revoked comes to its end by itself. */
  dropLease(number: number): void {
    this.revokeLease(number).catch(() => {})
  }

  /** `undefined` where there is no such lease. */
  async timeToLive(number: number, keys: boolean): Promise<TimeToLive | undefined> {
    try {
      const bytes = await this.#transport.call(TIME_TO_LIVE, writeTimeToLive(number, keys), true)
      const answer = readTimeToLive(bytes)
      return answer.granted > 0 ? answer : undefined
    } catch (error) {
      if (isFault(error, 'absent')) return undefined
      throw error
    }
  }
}

/** Many operations as few: etcd limits how many a transaction has, but not how deep they are. */
export function nested(ops: readonly Op[]): readonly Op[] {
  if (ops.length <= OPS_MOST) return ops
  const groups: Op[] = []
  const size = Math.ceil(ops.length / OPS_MOST)
  for (let at = 0; at < ops.length; at += size) {
    groups.push({ do: 'txn', compare: [], success: nested(ops.slice(at, at + size)), failure: [] })
  }
  return groups
}

/** The results of `nested` operations, of which there were so many, in their order. */
export function flat(answer: TxnAnswer, count: number): TxnAnswer {
  if (count <= OPS_MOST) return answer
  const results = answer.results.flatMap((each) =>
    each.txn === undefined ? [each] : flat(each.txn, Infinity).results,
  )
  return { ...answer, results }
}
