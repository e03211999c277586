import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { BaseSequencer } from 'vitest/node'
import { resolveOptions } from './resolve-options.js'

const files = JSON.parse(process.env.MUTATION_TESTS)

/** The cheapest tests come first: the first one that fails ends the run of a mutant. */
class InOrder extends BaseSequencer {
  async sort(specifications) {
    const place = ({ moduleId }) => files.findIndex((file) => moduleId.endsWith(file))
    return [...specifications].sort((one, other) => place(one) - place(other))
  }
}

export default defineConfig({
  ...resolveOptions(fileURLToPath(new URL('../../', import.meta.url))),
  test: {
    include: files,
    sequence: { sequencer: InOrder },
    // The files of one run share what they import: loading it takes longer than most tests.
    isolate: false,
    // A mutant that makes a promise wait for ever should not cost a minute.
    testTimeout: 8000,
    hookTimeout: 8000,
  },
})
