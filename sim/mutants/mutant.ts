/**
 * A planted bug: a change of the built code that a person could have made. It exists only in a copy
 * of the build for one run. The product has no switch for it.
 */
export interface Mutant {
  readonly name: string
  /** Why it takes so many seeds to catch that only the full run looks for it. */
  readonly rare?: string
  readonly edits: readonly Edit[]
  /** The recipe whose worlds look for it; worlds of locks and calls if not given. */
  readonly recipe?: string
  /** Worlds with replicas on a shared log look for it. */
  readonly replicas?: boolean
  /** The test that catches it, if worlds rarely do. Then its edits apply to the sources. */
  readonly test?: NamedTest
}

export interface NamedTest {
  readonly file: string
  readonly name: string
}

export interface Edit {
  /** A file of the library's build or sources; or of other parts, after `server/` or `sim/`. */
  readonly file: string
  /** Code that occurs exactly once in the file; otherwise the mutant is out of date. */
  readonly find: string
  readonly replace: string
}

export function mutant(name: string, file: string, find: string, replace: string): Mutant {
  return { name, edits: [{ file, find, replace }] }
}

/** Marks a bug that shows so rarely that only the full run looks for it. */
export function rare(why: string, one: Mutant): Mutant {
  return { ...one, rare: why }
}
