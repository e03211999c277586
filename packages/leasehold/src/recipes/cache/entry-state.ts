import type { Key, LeaseId, Mode, Token } from '../../port/index.ts'

/**
 * The keys of an entry, and what the claims on them mean.
 *
 * The loader claims `<base>load` exclusively, so only one process loads. Behind that claim stands a
 * *mark*: while the mark exists, the value is fresh and nobody can load. `<base>value` carries the
 * value, under a lease that no process renews. If stale values are served, the mark has a shorter
 * lease than the value. A failed loader leaves a mark that carries its error.
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

/** The fields of a claim that are used here. */
export interface Mark {
  readonly token: Token
  readonly lease: LeaseId
  readonly holder: string
  readonly mode: Mode
  readonly value?: string | undefined
}

export type EntryState =
  | { readonly type: 'fresh'; readonly json: string }
  /** A process is loading the value. `stale` is the previous value, if any. */
  | { readonly type: 'loading'; readonly stale: string | undefined }
  /** A loader failed recently. Nobody should retry yet. */
  | {
      readonly type: 'failed'
      readonly stale: string | undefined
      readonly holder: string
      readonly message: string
    }
  /** A loader died before it stored its value. Its marks block the next load. */
  | { readonly type: 'orphaned'; readonly stale: string | undefined; readonly marks: Mark[] }
  | { readonly type: 'missing'; readonly stale: string | undefined }

/** Prefix of a mark that carries an error. No lease id starts with it. */
export const FAILED = 'failed: '

/**
 * Computes the state of an entry from the claims on its two keys: a pure function.
 *
 * The newest value counts. It cannot be from a late loader: a loader stores its value on a claim
 * that it made while it was the loader, and the next loader removes that claim first.
 */
export function entryState(load: readonly Mark[], values: readonly Mark[]): EntryState {
  const entry = values.findLast(({ value }) => value !== undefined)
  const stale = entry?.value
  if (entry !== undefined) {
    const isFresh = load.some((mark) => mark.lease === entry.lease || mark.value === entry.lease)
    if (isFresh) return { type: 'fresh', json: entry.value! }
  }
  const [first] = load
  if (first === undefined) return { type: 'missing', stale }
  if (first.mode === 'exclusive') return { type: 'loading', stale }
  const failed = load.find(({ value }) => value?.startsWith(FAILED))
  if (failed === undefined) return { type: 'orphaned', stale, marks: [...load] }
  const message = failed.value!.slice(FAILED.length)
  return { type: 'failed', stale, holder: failed.holder, message }
}
