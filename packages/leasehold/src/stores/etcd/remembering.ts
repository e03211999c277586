import {
  type Busy,
  isLeaseholdError,
  LeaseholdError,
  type RequestId,
  type Revoked,
} from '../../port/index.ts'
import { type Entry, type Refused, readEntry, writeEntry } from './answers.ts'
import type { Context } from './context.ts'
import type { Compare, KeyValue, PutOp, RangeOp, Txn, TxnAnswer } from './messages.ts'
import { isFault } from './transport.ts'

/** So often a transaction is made again whose request's lease turned out to have ended. */
const TRIES_MOST = 3

/** The entry of a request that was answered before, and the revision of that. */
export interface Remembered {
  readonly entry: Entry
  readonly revision: number
}

export interface RequestTxn extends Txn {
  readonly request: RequestId | undefined
  readonly entry: Entry
  /** It often fails: what is then read is read by the transaction itself. */
  readonly failsOften?: boolean
  /** It may happen in one revision with others, and so be sent together with them. */
  readonly joint?: boolean
}

/**
 * Carries out a transaction for a request: only if it was not carried out before, and together with
 * the entry that says that it was. The first result of one that failed is that entry. What a failed
 * one is to read is mostly read afterwards: few fail, and all would carry it to etcd and back.
 */
export async function carryOut(context: Context, txn: RequestTxn): Promise<TxnAnswer> {
  const { layout, api } = context
  const { request, failsOften = false } = txn
  const looked: RangeOp = layout.get(layout.request(request ?? ''))
  const failure = [looked, ...(txn.failure as readonly RangeOp[])]
  const answer = await send(context, txn, failsOften ? failure : [])
  if (answer.succeeded || failsOften) return answer
  return { ...(await api.read(failure)), succeeded: false }
}

async function send(
  context: Context,
  { request, entry, compare, success, joint = false }: RequestTxn,
  failure: readonly RangeOp[],
): Promise<TxnAnswer> {
  const { requests } = context
  const sender = joint ? context.joint : context.api
  if (request === undefined) return sender.txn({ compare, success, failure }, false)
  const compares = [...compare, isNew(context, request)]
  for (let tries = 1; ; tries++) {
    const found = requests.lease(request)
    const lease = typeof found === 'number' ? found : await found
    const ops = [...success, entryPut(context, request, entry, lease)]
    try {
      const answer = await sender.txn({ compare: compares, success: ops, failure }, true)
      requests.answered(request)
      return answer
    } catch (error) {
      if (isLeaseholdError(error) && error.outcome === 'unknown') requests.unknown(request, lease)
      if (!isFault(error, 'absent') || tries === TRIES_MOST) throw error
      requests.forgotten(request, lease)
    }
  }
}

/** The entry among the results of a transaction that failed. */
export function rememberedIn(
  request: RequestId | undefined,
  { results }: TxnAnswer,
): Remembered | undefined {
  const kv = request === undefined ? undefined : results[0]?.kvs[0]
  return kv && rememberedOf(kv)
}

export function rememberedOf(kv: KeyValue): Remembered {
  return { entry: readEntry(kv.value), revision: kv.changed }
}

/** Keeps the answer of a call that changed nothing. Answers with what was kept first. */
export async function keep<A extends Busy | Revoked | Refused>(
  context: Context,
  request: RequestId | undefined,
  answer: A,
): Promise<A | Remembered> {
  if (request === undefined) return answer
  const entry: Entry = { did: 'nothing', answer }
  const kept = await carryOut(context, { compare: [], success: [], failure: [], request, entry })
  return kept.succeeded ? answer : rememberedIn(request, kept)!
}

/** The answer that a refused, busy or empty call was given; `undefined` for one that did something. */
export function emptyAnswer({ entry }: Remembered): Busy | Revoked | undefined {
  if (entry.did !== 'nothing') return undefined
  const { answer } = entry
  if ('outcome' in answer && answer.outcome === 'refused') {
    throw LeaseholdError.from(answer.refusal)
  }
  return answer
}

function isNew({ layout }: Context, request: RequestId): Compare {
  return { key: layout.request(request), of: 'created', is: 'equal', revision: 0 }
}

function entryPut({ layout }: Context, request: RequestId, entry: Entry, lease: number): PutOp {
  return { do: 'put', key: layout.request(request), value: writeEntry(entry), lease }
}
