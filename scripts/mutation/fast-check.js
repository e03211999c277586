import { createRequire } from 'node:module'

// Not an import: in the process of the mutants, that would resolve to this file.
const { default: real } = createRequire(import.meta.url)('fast-check')

/**
 * Replaces `fast-check` while mutants run. A surviving mutant costs every run of every property, so
 * there are fewer runs. The seed is fixed, so that a score can be repeated. The first
 * counterexample ends the test, because nobody reads a shorter one.
 */
const RUNS_MAX = Number(process.env.MUTATION_PROPERTY_RUNS ?? 8)
const SEED = 20_240

function fewer(parameters = {}) {
  const numRuns = Math.min(parameters.numRuns ?? RUNS_MAX, RUNS_MAX)
  return { ...parameters, numRuns, seed: SEED, endOnFailure: true }
}

const assert = (property, parameters) => real.assert(property, fewer(parameters))

export default { ...real, assert }
