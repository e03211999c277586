import type { Tenure } from 'leasehold/port'
import type { Mirror } from '../mirror.ts'
import type { TreeNode } from '../trees/key-tree.ts'
import { type Candidate, candidateOf } from './recipe-functions.ts'

export interface ElectionView {
  readonly name: string
  /** The key that the candidates claim. */
  readonly key: string
  /** The candidate that has taken the term. */
  readonly leader: Candidate | undefined
  /** The waiting candidates; all of them while nobody leads. */
  readonly others: readonly Candidate[]
}

/** All elections with candidates, by name. */
export function electionsOf(mirror: Mirror): ElectionView[] {
  return electionNames(mirror.internal.find('election')).flatMap((name) => {
    const key = `election/${name}/line`
    const row = mirror.keys.get(key)
    if (row === undefined) return []
    const line = row.claims.map(candidateOf)
    const leader = line[0]?.leads ? line[0] : undefined
    return [{ name, key, leader, others: leader === undefined ? line : line.slice(1) }]
  })
}

/** The elections whose name, or the name or holder of a candidate, contains the text. */
export function findElections(
  elections: readonly ElectionView[],
  text: string,
): readonly ElectionView[] {
  const wanted = text.trim().toLowerCase()
  if (wanted === '') return elections
  const has = (name: string) => name.toLowerCase().includes(wanted)
  return elections.filter(
    ({ name, leader, others }) =>
      has(name) ||
      [...(leader === undefined ? [] : [leader]), ...others].some(
        ({ candidate, holder }) => has(candidate) || has(holder),
      ),
  )
}

/** The names below a node of the tree; a name may have slashes. */
function electionNames(node: TreeNode | undefined, above = ''): string[] {
  return (node?.names?.list() ?? []).flatMap((part) => {
    const child = node!.children!.get(part)!
    if (child.isKey && part === 'line') return [above]
    return electionNames(child, above === '' ? part : `${above}/${part}`)
  })
}

export interface Span {
  readonly holder: string
  readonly token: number
  readonly from: number
  readonly to: number
  /** How it ended; `undefined` while it lasts. */
  readonly end: Tenure['end'] | undefined
}

/** The past and current holders of a key, the earliest first. */
export function spansOf(
  tenures: readonly Tenure[],
  current: { readonly holder: string; readonly token: number; readonly since: number } | undefined,
  now: number,
): Span[] {
  const past = tenures
    .map(({ holder, token, heldSince, endedAt, end }) => ({
      ...{ holder, token, end },
      from: heldSince,
      to: endedAt,
    }))
    .sort((a, b) => a.from - b.from)
  if (current === undefined) return past
  const { holder, token, since } = current
  return [...past, { holder, token, from: since, to: Math.max(now, since), end: undefined }]
}

/** The position of a span on a time axis, as fractions from 0 to 1. */
export function placed(
  { from, to }: Pick<Span, 'from' | 'to'>,
  begin: number,
  end: number,
): { readonly left: number; readonly width: number } {
  const whole = Math.max(1, end - begin)
  const left = Math.min(1, Math.max(0, (from - begin) / whole))
  const right = Math.min(1, Math.max(0, (to - begin) / whole))
  return { left, width: Math.max(0, right - left) }
}
