import { type End, holders, type Key, type Tenure, type Token } from '../../port/index.ts'
import { lineEnd } from './changing.ts'
import type { Context } from './context.ts'
import { type LineEnd, parseClaimName, readLineEnd, type StoredClaim } from './layout.ts'
import { nameOf } from './lines.ts'
import type { KeyValue } from './messages.ts'
import { isFault } from './transport.ts'

const EXPIRED: End = { reason: 'expired' }

/** Claims on a key ended: when and how, and who held the key until then. */
export interface Ending extends LineEnd {
  readonly changed: number
  readonly held: ReadonlySet<Token>
}

/**
 * The ends on a key, the latest first. A key has only the note of its latest end; etcd keeps the
 * notes before it, and the lines as they were, until it is compacted. So to note an end costs one
 * small write, and only who asks for the past pays for reading it.
 */
export async function endings(
  context: Context,
  key: Key,
  latest: KeyValue | undefined,
  most: number,
  since: Token,
): Promise<Ending[]> {
  const { api, layout } = context
  const chain: Ending[] = []
  let note = latest
  while (note !== undefined && chain.length < most && note.changed > since) {
    const { changed }: KeyValue = note
    const ended = readLineEnd(note.value)
    try {
      const { results } = await api.read([
        layout.lineNames(key, undefined, (ended.revision ?? changed) - 1),
        layout.get(layout.lastEnd(key), changed - 1),
      ])
      const line = results[0]!.kvs
      const count = holders(line.map(({ key: name }) => parseClaimName(nameOf(name))))
      const held = new Set(line.slice(0, count).map(({ created }) => created))
      chain.push({ ...ended, changed, held })
      note = results[1]!.kvs[0]
    } catch (error) {
      if (!isFault(error, 'compacted')) throw error
      // Who had the oldest end that is left was among those who held, as nearly all ends are.
      chain.push({ ...ended, changed, held: new Set(ended.claims.map(({ token }) => token)) })
      note = undefined
    }
  }
  return chain
}

/** Since when a claim holds, or held until the last of these ends: they are those before its own. */
export function heldSince(
  chain: readonly Ending[],
  { token, claimedAt }: { readonly token: Token; readonly claimedAt: number },
): number {
  for (const { at, changed, held } of chain) {
    if (changed < token) break
    if (!held.has(token)) return Math.max(at, claimedAt)
  }
  return claimedAt
}

/** Those who held, the latest first. */
export function tenuresOf(chain: readonly Ending[]): Tenure[] {
  return chain.flatMap(({ at, end, claims, held }, index) =>
    [...claims]
      .reverse()
      .filter(({ token }) => held.has(token))
      .map((claim): Tenure => {
        const { token, holder, lease } = claim
        const since = heldSince(chain.slice(index + 1), claim)
        return { token, holder, lease, heldSince: since, endedAt: Math.max(at, since), end }
      }),
  )
}

/**
 * Notes an expiry, which etcd carries out without a word: done by whoever sees it, and by the first
 * of them only. What ended later on the key has been noted already, and the expiry is then left out.
 */
export async function witness(
  context: Context,
  key: Key,
  claims: readonly StoredClaim[],
  revision: number,
): Promise<void> {
  const { api, layout } = context
  const guard = { key: layout.lastEnd(key), of: 'changed', is: 'less', revision } as const
  await context.ends.use((lease) => {
    const put = lineEnd(context, key, claims, EXPIRED, lease, revision)
    return api.txn({ compare: [guard], success: [put], failure: [] }, true)
  })
}
