import { type Ahead, type ClaimSpec, holders, holdsBehind, type Key } from '../../port/index.ts'
import type { Context } from './context.ts'
import { parseClaimName, storedClaim } from './layout.ts'
import type { KeyValue, RangeOp, Result } from './messages.ts'
import { isFault } from './transport.ts'

/** A key's line as it was read: the names of all claims in their order. */
export interface Line {
  readonly key: Key
  readonly names: readonly KeyValue[]
}

/** What must be read of a key to know who stands there; `linesOf` understands it. */
export function lineOps({ layout }: Context, keys: readonly Key[], revision?: number): RangeOp[] {
  return keys.map((key) => layout.lineNames(key, undefined, revision))
}

export function linesOf(keys: readonly Key[], results: readonly Result[]): Line[] {
  return keys.map((key, at) => ({ key, names: results[at]!.kvs }))
}

/** A line as it was before a claim, and the name of that; `undefined` where it is not known any more. */
export interface FormerLine extends Line {
  readonly own: string | undefined
}

function lineBefore({ key, names }: Line, token: number): FormerLine {
  const own = names.find(({ created }) => created === token)?.key
  return { key, own, names: names.filter(({ created }) => created < token) }
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

/** What stood at a revision before a claim at the end of each of these lines that it does not hold. */
export async function aheadOf(
  context: Context,
  specs: readonly ClaimSpec[],
  lines: readonly Line[],
  revision: number,
): Promise<readonly Ahead[]> {
  const { layout, known } = context
  const busy = lines.filter((line, at) => !isFree(line, specs[at]!))
  if (busy.length === 0) return NOTHING_AHEAD
  const firsts = await readFirsts(context, busy, revision)
  return busy.map(({ key, names }, at) => {
    const first = storedClaim(layout, firsts[at] ?? { ...names[0]!, value: FORGOTTEN })
    return { key, count: names.length, first: known.show(first, undefined) }
  })
}

const NOTHING_AHEAD: readonly Ahead[] = []
/** A claim of which etcd has forgotten everything but its name. */
const FORGOTTEN = JSON.stringify(['', 0, 0, 0, 0])

async function readFirsts(
  { api, layout }: Context,
  lines: readonly Line[],
  revision: number,
): Promise<(KeyValue | undefined)[]> {
  const gets = (at?: number) => lines.map(({ names }) => layout.get(names[0]!.key, at))
  try {
    return (await api.read(gets(revision))).results.map(({ kvs }) => kvs[0])
  } catch (error) {
    if (!isFault(error, 'compacted')) throw error
    return (await api.read(gets())).results.map(({ kvs }) => kvs[0])
  }
}

/** The lines as they were before the claims of this revision were made, by a call of this process. */
export async function linesAt(
  context: Context,
  keys: readonly Key[],
  token: number,
): Promise<FormerLine[]> {
  const { api, known, layout } = context
  const lines = linesOf(keys, await readLines(context, keys, token))
  const former = lines.map((line) => lineBefore(line, token))
  const { results } = await api.read(former.flatMap(({ own }) => (own ? [layout.get(own)] : [])))
  for (const kv of results.flatMap(({ kvs }) => kvs)) known.claimed(storedClaim(layout, kv))
  return former
}

async function readLines(context: Context, keys: readonly Key[], revision: number) {
  try {
    return (await context.api.read(lineOps(context, keys, revision))).results
  } catch (error) {
    if (!isFault(error, 'compacted')) throw error
    // etcd has forgotten how it was: what of it still stands is all that can be said.
    return (await context.api.read(lineOps(context, keys))).results
  }
}
