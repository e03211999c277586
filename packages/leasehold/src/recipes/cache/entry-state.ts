import type { Key, LeaseId, Mode, Token } from '../../port/index.ts'

/**
 * Where an entry is kept, and what the claims there mean.
 *
 * `<base>load` is claimed exclusively by whoever loads, so that one does. Behind that claim, with the
 * value, stands a *mark*: while it is there the value is fresh and nobody can load. `<base>value` has
 * the value, under a lease of its own that no process keeps. Where stale values are served the mark
 * is under a shorter lease, so that it goes first. A loader that failed leaves a mark that says so.
 */
export interface EntryKeys {
  readonly base: string
  readonly load: Key
  readonly value: Key
}

export function entryKeys(cache: string, part: string): EntryKeys {
  const base = `cache/${cache}/${part}/`
  return { base, load: `${base}load`, value: `${base}value` }
}

/** A claim, as far as it matters here. */
export interface Mark {
  readonly token: Token
  readonly lease: LeaseId
  readonly holder: string
  readonly mode: Mode
  readonly value?: string | undefined
}

export type EntryState =
  | { readonly type: 'fresh'; readonly text: string }
  /** Somebody loads it. `stale` is the value from before, if there is one. */
  | { readonly type: 'loading'; readonly stale: string | undefined }
  /** A loader failed a short while ago, and nobody is to try for now. */
  | {
      readonly type: 'failed'
      readonly stale: string | undefined
      readonly holder: string
      readonly message: string
    }
  /** Marks of a loader that died before it had stored its value: they are in the way. */
  | { readonly type: 'orphaned'; readonly stale: string | undefined; readonly marks: Mark[] }
  | { readonly type: 'missing'; readonly stale: string | undefined }

/** What marks of failure begin with; no lease is called so. */
export const FAILED = 'failed: '

/**
 * How an entry stands: a pure function of the claims on its two keys, in their order.
 *
 * The newest value counts. A late loader cannot be that: it stores its value by changing a claim that
 * it made while it was the loader, and whoever loads after it has removed that claim first.
 */
export function entryState(load: readonly Mark[], values: readonly Mark[]): EntryState {
  const entry = values.findLast(({ value }) => value !== undefined)
  const stale = entry?.value
  if (entry !== undefined) {
    const isFresh = load.some((mark) => mark.lease === entry.lease || mark.value === entry.lease)
    if (isFresh) return { type: 'fresh', text: entry.value! }
  }
  const [first] = load
  if (first === undefined) return { type: 'missing', stale }
  if (first.mode === 'exclusive') return { type: 'loading', stale }
  const failed = load.find(({ value }) => value?.startsWith(FAILED))
  if (failed === undefined) return { type: 'orphaned', stale, marks: [...load] }
  const message = failed.value!.slice(FAILED.length)
  return { type: 'failed', stale, holder: failed.holder, message }
}
