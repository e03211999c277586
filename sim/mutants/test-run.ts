import { fileURLToPath } from 'node:url'
import { startVitest } from 'vitest/node'
import type { Mutant, NamedTest } from './mutant.js'
import { plantedFiles } from './plant.js'

const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

/** Whether the test passes without the bug and fails with it. */
export async function isCaught(mutant: Mutant, test: NamedTest): Promise<boolean> {
  if (!(await passes({ ...mutant, edits: [] }, test))) {
    throw new Error(`"${test.name}" fails without a planted bug`)
  }
  return !(await passes(mutant, test))
}

async function passes(mutant: Mutant, { file, name }: NamedTest): Promise<boolean> {
  const files = await plantedFiles(mutant)
  const vitest = await startVitest(
    'test',
    [file],
    { root: ROOT, config: false, watch: false, testNamePattern: name, reporters: [{}] },
    { plugins: [{ name: 'plant', enforce: 'pre', load: (path) => files.get(path) }] },
  )
  const tests = vitest.state.getTestModules().flatMap(({ children }) => [...children.allTests()])
  const states = tests.map((each) => each.result().state).filter((state) => state !== 'skipped')
  await vitest.close()
  if (states.length !== 1) throw new Error(`${states.length} tests of ${file} are named "${name}"`)
  return states[0] === 'passed'
}
