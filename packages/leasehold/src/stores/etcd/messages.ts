import { type Bytes, Reader, Writer } from './wire.ts'

/** etcd's v3 messages, as far as they are used here: what is sent, and what comes back. */
export interface RangeOp {
  readonly do: 'range'
  readonly key: Bytes
  /** One key without it. */
  readonly end?: Bytes | undefined
  readonly limit?: number | undefined
  /** As it was at this revision; as it is now without it. */
  readonly revision?: number | undefined
  /** In the order of their creation, the first first; by name without it. */
  readonly byCreation?: boolean | undefined
  readonly keysOnly?: boolean | undefined
  /** Only those that were created at these revisions. */
  readonly createdFrom?: number | undefined
  readonly createdTo?: number | undefined
}

export interface PutOp {
  readonly do: 'put'
  readonly key: Bytes
  readonly value: string
  /** The lease to tie it to; `keep` leaves it on the one that it has. */
  readonly lease: number | 'keep'
}

export interface DeleteOp {
  readonly do: 'delete'
  readonly key: Bytes
}

export interface TxnOp extends Txn {
  readonly do: 'txn'
}

export type Op = RangeOp | PutOp | DeleteOp | TxnOp

/** A key (or with `end` each key of a range) compared; one that is not there has revisions of 0. */
export interface Compare {
  readonly key: Bytes
  readonly end?: Bytes | undefined
  readonly of: 'created' | 'changed'
  readonly is: 'equal' | 'less'
  readonly revision: number
}

export interface Txn {
  readonly compare: readonly Compare[]
  readonly success: readonly Op[]
  readonly failure: readonly Op[]
}

export interface KeyValue {
  readonly key: string
  readonly created: number
  readonly changed: number
  readonly value: string
}

export interface Ranged {
  readonly kvs: readonly KeyValue[]
  readonly more: boolean
  /** How many there are in all. */
  readonly count: number
}

/** What came of an operation: the keys of a range, how many a delete took, a transaction's own. */
export interface Result extends Ranged {
  readonly deleted: number
  readonly txn: TxnAnswer | undefined
}

export interface TxnAnswer {
  readonly revision: number
  readonly succeeded: boolean
  readonly results: readonly Result[]
}

export interface WatchCreate {
  readonly id: number
  readonly key: Bytes
  readonly end: Bytes | undefined
  /** From this revision on. */
  readonly from: number
  readonly deletesOnly: boolean
}

export interface WatchEvent {
  readonly deleted: boolean
  readonly kv: KeyValue
  /** What it was before; missing where etcd has forgotten it. */
  readonly before: KeyValue | undefined
}

export interface WatchAnswer {
  readonly revision: number
  readonly id: number
  readonly created: boolean
  readonly canceled: boolean
  readonly compacted: number
  readonly reason: string
  readonly events: readonly WatchEvent[]
}

const writer = new Writer()

export function writeTxn(txn: Txn): Buffer {
  txnFields(txn)
  return writer.finish()
}

function txnFields(txn: Txn): void {
  for (const compare of txn.compare) writer.message(1, () => compareFields(compare))
  for (const op of txn.success) writer.message(2, () => opField(op))
  for (const op of txn.failure) writer.message(3, () => opField(op))
}

function compareFields({ key, end = '', of, is, revision }: Compare): void {
  writer
    .integer(1, is === 'less' ? 2 : 0)
    .integer(2, of === 'created' ? 1 : 2)
    .bytes(3, key)
    .integer(of === 'created' ? 5 : 6, revision)
    .bytes(64, end)
}

function opField(op: Op): void {
  if (op.do === 'range') writer.message(1, () => rangeFields(op))
  else if (op.do === 'put') writer.message(2, () => putFields(op))
  else if (op.do === 'delete') writer.message(3, () => writer.bytes(1, op.key))
  else writer.message(4, () => txnFields(op))
}

function rangeFields(op: RangeOp): void {
  writer
    .bytes(1, op.key)
    .bytes(2, op.end ?? '')
    .integer(3, op.limit ?? 0)
    .integer(4, op.revision ?? 0)
    .integer(5, op.byCreation ? 1 : 0)
    .integer(6, op.byCreation ? 2 : 0)
    .flag(8, op.keysOnly)
    .integer(12, op.createdFrom ?? 0)
    .integer(13, op.createdTo ?? 0)
}

function putFields({ key, value, lease }: PutOp): void {
  writer.bytes(1, key).bytes(2, value)
  if (lease === 'keep') writer.flag(6, true)
  else writer.integer(3, lease)
}

export function readTxn(bytes: Uint8Array): TxnAnswer {
  return txnAnswer(new Reader(bytes))
}

function txnAnswer(reader: Reader): TxnAnswer {
  let revision = 0
  let succeeded = false
  const results: Result[] = []
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) revision = headerRevision(reader.message())
    else if (field === 2) succeeded = reader.integer() !== 0
    else if (field === 3) results.push(result(reader.message()))
    else reader.skip()
  }
  return { revision, succeeded, results }
}

function headerRevision(reader: Reader): number {
  let revision = 0
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 3) revision = reader.integer()
    else reader.skip()
  }
  return revision
}

function result(reader: Reader): Result {
  const answer = { kvs: [] as KeyValue[], more: false, count: 0, deleted: 0 }
  let txn: TxnAnswer | undefined
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) ranged(reader.message(), answer)
    else if (field === 3) answer.deleted = deletedCount(reader.message())
    else if (field === 4) txn = txnAnswer(reader.message())
    else reader.skip()
  }
  const { kvs, more, count, deleted } = answer
  return { kvs, more, count, deleted, txn }
}

function ranged(reader: Reader, answer: { kvs: KeyValue[]; more: boolean; count: number }): void {
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 2) answer.kvs.push(keyValue(reader.message()))
    else if (field === 3) answer.more = reader.integer() !== 0
    else if (field === 4) answer.count = reader.integer()
    else reader.skip()
  }
}

function deletedCount(reader: Reader): number {
  let deleted = 0
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 2) deleted = reader.integer()
    else reader.skip()
  }
  return deleted
}

function keyValue(reader: Reader): KeyValue {
  let key = ''
  let created = 0
  let changed = 0
  let value = ''
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) key = reader.text()
    else if (field === 2) created = reader.integer()
    else if (field === 3) changed = reader.integer()
    else if (field === 5) value = reader.text()
    else reader.skip()
  }
  return { key, created, changed, value }
}

export function writeLeaseGrant(id: number, seconds: number): Buffer {
  return writer.integer(1, seconds).integer(2, id).finish()
}

/** The id of a lease, which is all that is said to revoke it or to keep it alive. */
export function writeLeaseId(id: number): Buffer {
  return writer.integer(1, id).finish()
}

export function writeTimeToLive(id: number, keys: boolean): Buffer {
  return writer.integer(1, id).flag(2, keys).finish()
}

export interface TimeToLive {
  /** Whole seconds that are left; below 1 for a lease that is not there. */
  readonly remaining: number
  readonly granted: number
  readonly keys: readonly string[]
}

export function readTimeToLive(bytes: Uint8Array): TimeToLive {
  const reader = new Reader(bytes)
  let remaining = 0
  let granted = 0
  const keys: string[] = []
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 3) remaining = reader.integer()
    else if (field === 4) granted = reader.integer()
    else if (field === 5) keys.push(reader.text())
    else reader.skip()
  }
  return { remaining, granted, keys }
}

/** Whether the lease that was to be kept alive still was. */
export function readKeepAlive(bytes: Uint8Array): { id: number; alive: boolean } {
  const reader = new Reader(bytes)
  let id = 0
  let alive = false
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 2) id = reader.integer()
    else if (field === 3) alive = reader.integer() > 0
    else reader.skip()
  }
  return { id, alive }
}

export function writeWatchCreate(watch: WatchCreate): Buffer {
  const { id, key, end = '', from, deletesOnly } = watch
  writer.message(1, () => {
    writer.bytes(1, key).bytes(2, end).integer(3, from)
    // A list with the one filter that leaves out puts, whose number is 0.
    if (deletesOnly) writer.bytes(5, Buffer.from([0]))
    writer.flag(6, !deletesOnly).integer(7, id).flag(4, true)
  })
  return writer.finish()
}

export function writeWatchCancel(id: number): Buffer {
  return writer.message(2, () => writer.integer(1, id)).finish()
}

/** Asks for a sign of life. */
export function writeWatchProgress(): Buffer {
  return writer.message(3, () => {}).finish()
}

export function readWatch(bytes: Uint8Array): WatchAnswer {
  const reader = new Reader(bytes)
  const answer = { revision: 0, id: 0, created: false, canceled: false, compacted: 0, reason: '' }
  const events: WatchEvent[] = []
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) answer.revision = headerRevision(reader.message())
    else if (field === 2) answer.id = reader.integer()
    else if (field === 3) answer.created = reader.integer() !== 0
    else if (field === 4) answer.canceled = reader.integer() !== 0
    else if (field === 5) answer.compacted = reader.integer()
    else if (field === 6) answer.reason = reader.text()
    else if (field === 11) events.push(watchEvent(reader.message()))
    else reader.skip()
  }
  return { ...answer, events }
}

function watchEvent(reader: Reader): WatchEvent {
  let deleted = false
  let kv: KeyValue = { key: '', created: 0, changed: 0, value: '' }
  let before: KeyValue | undefined
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 1) deleted = reader.integer() === 1
    else if (field === 2) kv = keyValue(reader.message())
    else if (field === 3) before = keyValue(reader.message())
    else reader.skip()
  }
  return { deleted, kv, before }
}

export function writeAuthenticate(name: string, password: string): Buffer {
  return writer.bytes(1, name).bytes(2, password).finish()
}

export function readAuthenticate(bytes: Uint8Array): string {
  const reader = new Reader(bytes)
  let token = ''
  for (let field = reader.next(); field !== 0; field = reader.next()) {
    if (field === 2) token = reader.text()
    else reader.skip()
  }
  return token
}
