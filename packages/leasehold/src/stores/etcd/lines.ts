import { type Ahead, type ClaimSpec, holders, holdsBehind, type Key } from '../../port/index.ts'
import type { Context } from './context.ts'
import { parseClaimName, storedClaim } from './layout.ts'
import type { KeyValue, RangeOp, Result } from './messages.ts'

/** A key's line as it was read: the names of all claims in their order, and the first in full. */
export interface Line {
  readonly key: Key
  readonly names: readonly KeyValue[]
  readonly first: KeyValue | undefined
}

/** What must be read of a key to know who stands there; `linesOf` understands it. */
export function lineOps({ layout }: Context, keys: readonly Key[], revision?: number): RangeOp[] {
  return keys.flatMap((key) => [
    { ...layout.lineNames(key), revision },
    { ...layout.first(key), revision },
  ])
}

export function linesOf(keys: readonly Key[], results: readonly Result[]): Line[] {
  return keys.map((key, at) => ({
    key,
    names: results[2 * at]!.kvs,
    first: results[2 * at + 1]!.kvs[0],
  }))
}

/** The same line without the claims of this revision and those after it. */
export function lineBefore(line: Line, token: number): Line {
  const names = line.names.filter(({ created }) => created < token)
  return { ...line, names, first: names.length === 0 ? undefined : line.first }
}

/** Whether a new claim at the end of the line would hold. */
export function isFree({ names }: Line, { mode = 'exclusive', limit }: ClaimSpec): boolean {
  if (names.length === 0) return true
  const line = names.map(({ key }) => parseClaimName(nameOf(key)))
  const held = holders(line)
  return held === line.length && holdsBehind({ mode, limit }, held, line[0]!.mode === 'shared')
}

/** The part of a name in etcd that says how a claim stands. */
export function nameOf(name: string): string {
  return name.slice(name.indexOf('\u0000') + 1)
}

/** What stands before a claim at the end of each of these lines that it does not hold. */
export function aheadOf(
  { layout, known }: Context,
  specs: readonly ClaimSpec[],
  lines: readonly Line[],
): Ahead[] {
  return lines.flatMap((line, at): Ahead[] => {
    if (isFree(line, specs[at]!)) return []
    const first = storedClaim(layout, line.first!)
    return [{ key: line.key, count: line.names.length, first: known.show(first, undefined) }]
  })
}
