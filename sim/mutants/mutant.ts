/**
 * A planted bug: a change of the built code that somebody could have made. It exists only in a copy
 * of the build that is made for the run; no switch for it is anywhere in the product.
 */
export interface Mutant {
  readonly name: string
  /** Why it takes so many seeds to be caught that the tests leave it to the full run. */
  readonly rare?: string
  readonly edits: readonly Edit[]
  /** The recipe in whose worlds it is to be looked for; those of locks and calls if not given. */
  readonly recipe?: string
  /** It is to be looked for in worlds with replicas on a shared log. */
  readonly replicas?: boolean
  /** The test that catches it, if no world does or very few. Its edits are of the sources then. */
  readonly test?: NamedTest
}

export interface NamedTest {
  readonly file: string
  readonly name: string
}

export interface Edit {
  /** A file of the library's build, or of its sources; or with `server/` or `sim/` before it. */
  readonly file: string
  /** Text that stands there exactly once; where it does not, the mutant is out of date. */
  readonly find: string
  readonly replace: string
}

export function mutant(name: string, file: string, find: string, replace: string): Mutant {
  return { name, edits: [{ file, find, replace }] }
}

/** Marks one that shows itself so seldom that only the full run waits for it. */
export function rare(why: string, one: Mutant): Mutant {
  return { ...one, rare: why }
}
