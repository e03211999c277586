import type { Position } from '../../log/index.ts'

/** The number of entries in a segment. */
export const SEGMENT = 4096

/**
 * The path of an entry. Entries are sequential nodes in segments. ZooKeeper numbers the nodes of a
 * parent without gaps, so the position determines the path, and the path the position. Nodes that are
 * created in a full segment are not in the log.
 */
export function pathOf(log: string, position: Position): string {
  return `${segmentPath(log, segmentOf(position))}/${digits((position - 1) % SEGMENT)}`
}

/** `undefined` if it is not an entry, or was created after the segment was full. */
export function positionAt(log: string, path: string): Position | undefined {
  const [segment, number] = path.slice(log.length + 1).split('/')
  if (number === undefined || Number(number) >= SEGMENT) return undefined
  return Number(segment) * SEGMENT + Number(number) + 1
}

export function segmentOf(position: Position): number {
  return Math.floor((position - 1) / SEGMENT)
}

export function segmentPath(log: string, segment: number): string {
  return `${log}/${digits(segment)}`
}

/** The number at the end of a sequential node has ten digits. */
function digits(number: number): string {
  return `${number}`.padStart(10, '0')
}
