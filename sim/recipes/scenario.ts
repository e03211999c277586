import type { RecipeHarness } from './harness.js'

/** A recipe in use, with its invariants. */
export interface RecipeScenario {
  /** Checks the beliefs of all actors. Called every few milliseconds of true time. */
  check(): void
  /** The faults are over: from now on the recipe must make progress. */
  healed(): void
  /** The world ends. */
  finish(): void
}

export type MakeScenario = (harness: RecipeHarness) => RecipeScenario
