import type { Op } from './messages.ts'
import type { Bytes } from './wire.ts'

/** The most bytes that an operation has beside its key and its value. */
const FRAME_BYTES = 32

/** How many bytes an operation is in a request, or a few more. */
export function bytesOf(op: Op): number {
  if (op.do === 'txn') return bytesOfAll([...op.success, ...op.failure])
  const end = op.do === 'range' ? lengthOf(op.end ?? '') : 0
  const value = op.do === 'put' ? lengthOf(op.value) : 0
  return FRAME_BYTES + lengthOf(op.key) + end + value
}

export function bytesOfAll(ops: readonly Op[]): number {
  return ops.reduce((sum, op) => sum + bytesOf(op), 0)
}

function lengthOf(bytes: Bytes): number {
  return typeof bytes === 'string' ? Buffer.byteLength(bytes) : bytes.length
}

/** Divides operations, in their order, so that each part has at most so many bytes. */
export function inParts<O extends Op>(ops: readonly O[], most: number): O[][] {
  const parts: O[][] = []
  let left = 0
  for (const op of ops) {
    const bytes = bytesOf(op)
    if (bytes > left) {
      parts.push([])
      left = most
    }
    parts.at(-1)!.push(op)
    left -= bytes
  }
  return parts
}
