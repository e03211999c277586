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
import { inParts } from './sizes.ts'
import { type Effect, isFault, type Transport } from './transport.ts'

const TXN = '/etcdserverpb.KV/Txn'
const GRANT = '/etcdserverpb.Lease/LeaseGrant'
const REVOKE = '/etcdserverpb.Lease/LeaseRevoke'
const TIME_TO_LIVE = '/etcdserverpb.Lease/LeaseTimeToLive'

/** The longest that an etcd lease can live, in seconds: 285 years stand for ever. */
const FOR_EVER = 9_000_000_000

/** So many operations are in one transaction at most, or in one within it. */
const OPS_MOST = 60

/** So much is asked for at once: etcd reads no request of more than 2 MiB. */
const READ_BYTES = 1_000_000

/** etcd's calls that are used here, each as a function. */
export class Api {
  readonly #transport: Transport
  readonly #random: Random

  constructor(transport: Transport, random: Random) {
    this.#transport = transport
    this.#random = random
  }

  /** `repeatable`: being carried out twice does no harm, and gives the same answer. */
  txn(txn: Txn, repeatable: boolean): Promise<TxnAnswer> {
    return this.#txn(txn, repeatable ? 'repeatable' : 'once')
  }

  async #txn(txn: Txn, effect: Effect): Promise<TxnAnswer> {
    return readTxn(await this.#transport.call(TXN, writeTxn(txn), effect))
  }

  /** Reads, all at one revision, however many there are. */
  async read(ranges: readonly RangeOp[]): Promise<TxnAnswer> {
    const [first = [], ...rest] = inParts(ranges, READ_BYTES)
    const answer = await this.#readPart(first)
    const results = [...answer.results]
    for (const part of rest) {
      const then = part.map((range) => ({ ...range, revision: range.revision || answer.revision }))
      results.push(...(await this.#readPart(then)).results)
    }
    return { ...answer, results }
  }

  async #readPart(ranges: readonly RangeOp[]): Promise<TxnAnswer> {
    const txn = { compare: [], success: nested(ranges), failure: [] }
    return flat(await this.#txn(txn, 'reads'), ranges.length)
  }

  /**
   * A new etcd lease, which nobody else knows. Its number is ours, so that asking twice is one; and
   * nothing is tied to it yet, so that nobody can tell whether it was made.
   */
  async grantLease(ms: number): Promise<number> {
    const number = 1 + Math.floor(this.#random.next() * (Number.MAX_SAFE_INTEGER - 1))
    const seconds = ms === Infinity ? FOR_EVER : Math.max(Math.ceil(ms / 1000), 1)
    try {
      await this.#transport.call(GRANT, writeLeaseGrant(number, seconds), 'reads')
    } catch (error) {
      // The first of two calls was carried out though its answer was lost.
      if (!isFault(error, 'present')) throw error
    }
    return number
  }

  async revokeLease(number: number): Promise<void> {
    try {
      await this.#transport.call(REVOKE, writeLeaseId(number), 'repeatable')
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
      const bytes = await this.#transport.call(TIME_TO_LIVE, writeTimeToLive(number, keys), 'reads')
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
