import {
  ByteReader,
  ByteWriter,
  decodeRecords,
  putAnswer,
  putEnd,
  RecordEncoder,
  takeAnswer,
  takeEnd,
} from '../../encoding/index.ts'
import type { Kernel } from '../../kernel/index.ts'
import type { Position } from '../../log/index.ts'
import type { Key, Tenure } from '../../port/index.ts'
import { checkFormat } from '../faults.ts'
import type { Column } from './column.ts'
import { Hash } from './hash.ts'

/** Every snapshot begins with these two letters and the format of the rest. */
const [FIRST, SECOND] = [0x4c, 0x53]
const FORMAT = 1

/** The kinds of blocks. They are stored: never change a number, only add. */
const [END, HEAD, RENEWALS, LEASES, ANSWERS, ENDS, TENURES, IDLE] = [
  0, 1, 2, 3, 4, 5, 6, 7,
] as const

/** The size of one block: about a millisecond's work. */
const SLOTS = 512
const ITEMS = 1024

/** A copy of a machine at one position. */
export interface MachineCopy {
  readonly position: Position
  readonly head: Uint8Array
  readonly kernel: Kernel
  readonly renewedPosition: Column
  readonly lifeLeft: Column
}

/**
 * The bytes of a snapshot, one block at a time: a kind, a length, and the content. The caller may do
 * other work between two blocks. The last block has a hash of all others.
 */
export function* snapshotBlocks(copy: MachineCopy): Generator<Uint8Array> {
  const hash = new Hash()
  const hashed = (block: Uint8Array): Uint8Array => {
    hash.bytes(block)
    return block
  }
  yield hashed(Uint8Array.of(FIRST, SECOND, FORMAT))
  yield hashed(blockOf(HEAD, copy.head))
  const { kernel } = copy
  const records = new RecordEncoder()
  for (let from = 0; from < kernel.slots; from += SLOTS) {
    const to = Math.min(from + SLOTS, kernel.slots)
    yield hashed(blockOf(RENEWALS, renewals(copy, from, to)))
    kernel.describe(from, to, records)
    yield hashed(blockOf(LEASES, records.take()))
  }
  const { retained } = kernel
  for (const block of inBlocks(ANSWERS, retained.answers(), putRequest)) yield hashed(block)
  for (const block of inBlocks(ENDS, retained.ends(), putEnded)) yield hashed(block)
  for (const block of inBlocks(TENURES, retained.tenures(), putTenure)) yield hashed(block)
  for (const block of inBlocks(IDLE, retained.idleKeys(), putIdle)) yield hashed(block)
  const last = new ByteWriter(8)
  last.integer(hash.value)
  yield blockOf(END, last.view())
}

export interface SnapshotTarget {
  /** Creates the kernel that the rest is loaded into, and returns the time of the log. */
  head(bytes: ByteReader): { readonly kernel: Kernel; readonly time: number }
  /**
   * Receives the position at which the lease in this slot was granted or last renewed, and how much of
   * its life was left according to the last entry that stated it.
   */
  renewed(slot: number, position: Position, lifeLeft: number): void
}

/** Reads what `snapshotBlocks` wrote. Throws `unsupported`, or another error if it is damaged. */
export function readSnapshot(chunks: readonly Uint8Array[], target: SnapshotTarget): void {
  const whole = Buffer.concat(chunks)
  if (whole[0] !== FIRST || whole[1] !== SECOND) throw new Error('Leasehold did not write it')
  checkFormat('the snapshot', whole[2]!, FORMAT)
  const blocks = blocksOf(whole)
  const head = blocks.find(({ kind }) => kind === HEAD)
  if (!head) throw new Error('it has no head block')
  const { kernel, time } = target.head(new ByteReader(head.body))
  const times: [slot: number, time: number][] = []
  const replay = kernel.replay()
  for (const { kind, body } of blocks) {
    if (kind === RENEWALS) takeRenewals(body, times, (count) => replay.covers(count), target)
    else if (kind === LEASES) decodeRecords(body, replay, () => true)
  }
  replay.check()
  kernel.startEvents(kernel.revision)
  kernel.finishReplay(time, time)
  for (const [slot, at] of times) kernel.bySlot.restoreRenewal(slot, at)
  const idle: [Key, boolean][] = []
  for (const { kind, body } of blocks) {
    const bytes = new ByteReader(body)
    while (!bytes.done && kind >= ANSWERS) takeRetained(kind, bytes, kernel, idle)
  }
  kernel.retained.setIdleKeys(idle)
}

interface Block {
  readonly kind: number
  readonly body: Buffer
}

/** Checks the hash before anything is used. */
function blocksOf(whole: Buffer): Block[] {
  const bytes = new ByteReader(whole)
  const hash = new Hash()
  hash.bytes(whole.subarray(0, 3))
  bytes.skip(3)
  const blocks: Block[] = []
  for (;;) {
    const start = bytes.position
    const kind = bytes.byte()
    const length = bytes.integer()
    const body = whole.subarray(bytes.position, bytes.position + length)
    if (body.length < length) throw new RangeError('it ends too early')
    if (kind === END) {
      const expected = new ByteReader(body).integer()
      if (hash.value === expected) return blocks
      throw new Error(`its checksum is ${hash.value}, but should be ${expected}`)
    }
    bytes.skip(length)
    hash.bytes(whole.subarray(start, bytes.position))
    blocks.push({ kind, body })
  }
}

function renewals(copy: MachineCopy, from: number, to: number): Buffer {
  const { kernel, renewedPosition, lifeLeft } = copy
  const bytes = new ByteWriter()
  bytes.integer(to)
  for (let slot = from; slot < to; slot++) {
    if (kernel.bySlot.born(slot) === 0) continue
    bytes.integer(slot)
    bytes.float(kernel.bySlot.renewedAt(slot))
    bytes.integer(renewedPosition.get(slot))
    bytes.number(lifeLeft.get(slot))
  }
  return bytes.view()
}

function takeRenewals(
  body: Buffer,
  times: [slot: number, time: number][],
  covers: (slots: number) => void,
  target: SnapshotTarget,
): void {
  const bytes = new ByteReader(body)
  covers(bytes.integer())
  while (!bytes.done) {
    const slot = bytes.integer()
    times.push([slot, bytes.float()])
    target.renewed(slot, bytes.integer(), bytes.number())
  }
}

function putRequest(
  bytes: ByteWriter,
  [request, answer]: [string, Parameters<typeof putAnswer>[1]],
) {
  bytes.string(request)
  putAnswer(bytes, answer)
}

function putEnded(bytes: ByteWriter, [born, end]: [number, Tenure['end']]): void {
  bytes.integer(born)
  putEnd(bytes, end)
}

function putTenure(bytes: ByteWriter, tenure: readonly [Key, Tenure] | undefined): void {
  bytes.byte(tenure ? 1 : 0)
  if (!tenure) return
  const [key, { token, holder, lease, heldSince, endedAt, end }] = tenure
  bytes.string(key)
  bytes.integer(token)
  bytes.string(holder)
  bytes.string(lease)
  bytes.number(heldSince)
  bytes.number(endedAt)
  putEnd(bytes, end)
}

function takeTenure(bytes: ByteReader): readonly [Key, Tenure] | undefined {
  if (bytes.byte() === 0) return undefined
  const key = bytes.string()
  const token = bytes.integer()
  const [holder, lease] = [bytes.string(), bytes.string()]
  const [heldSince, endedAt] = [bytes.number(), bytes.number()]
  return [key, { token, holder, lease, heldSince, endedAt, end: takeEnd(bytes) }]
}

function putIdle(bytes: ByteWriter, [key, isUsed]: readonly [Key, boolean]): void {
  bytes.string(key)
  bytes.byte(isUsed ? 1 : 0)
}

function takeRetained(
  kind: number,
  bytes: ByteReader,
  { retained }: Kernel,
  idle: [Key, boolean][],
): void {
  if (kind === ANSWERS) retained.addAnswer(bytes.string(), takeAnswer(bytes))
  else if (kind === ENDS) retained.addEnd(bytes.integer(), takeEnd(bytes))
  else if (kind === TENURES) retained.addTenure(takeTenure(bytes))
  else if (kind === IDLE) idle.push([bytes.string(), bytes.byte() === 1])
  else throw new RangeError(`a block has the unknown kind ${kind}`)
}

function* inBlocks<T>(
  kind: number,
  items: Iterable<T>,
  put: (bytes: ByteWriter, item: T) => void,
): Generator<Uint8Array> {
  const bytes = new ByteWriter()
  let count = 0
  for (const item of items) {
    put(bytes, item)
    if (++count % ITEMS !== 0) continue
    yield blockOf(kind, bytes.view())
    bytes.clear()
  }
  if (bytes.length > 0) yield blockOf(kind, bytes.view())
}

/** Makes a copy, because the writer of the body reuses its buffer. */
function blockOf(kind: number, body: Uint8Array): Uint8Array {
  const bytes = new ByteWriter(16)
  bytes.byte(kind)
  bytes.integer(body.length)
  return Buffer.concat([bytes.view(), body])
}
