import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** The files that take longest. If one of them started last, the others would end long before it. */
const LONGEST = [
  'packages/leasehold/test/sim/mutants.test.ts',
  'packages/leasehold/test/model/leases-on-a-log.test.ts',
  'packages/leasehold/test/sim/seeds.test.ts',
  'packages/leasehold-server/test/lifecycle/killed.test.ts',
  'packages/leasehold/test/sim/coverage.test.ts',
  'packages/leasehold-server/test/dashboard/browser/views.test.ts',
  'packages/leasehold/test/stores/postgres/commands.test.ts',
  'packages/leasehold/test/structure/package.test.ts',
  'packages/leasehold/test/logs/postgres/crowd.test.ts',
  'packages/leasehold-server/test/dashboard/browser/actions.test.ts',
  'packages/leasehold/test/logs/postgres/conformance.test.ts',
  'packages/leasehold/test/logs/etcd/crowd.test.ts',
  'packages/leasehold/test/kernel/model/kernel-model.test.ts',
  'packages/leasehold/test/stores/postgres/conformance.test.ts',
  'packages/leasehold/test/sim/recipes.test.ts',
]

/** Vitest's own order, but starts with the files that take longest. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const missing = LONGEST.filter((path) => !existsSync(join(this.ctx.config.root, path)))
    if (missing.length > 0) throw new Error(`LONGEST has files that do not exist: ${missing}`)
    const others = await super.sort(files)
    const longest = LONGEST.flatMap((path) =>
      files.filter(({ moduleId }) => moduleId.endsWith(path)),
    )
    return [...longest, ...others.filter((file) => !longest.includes(file))]
  }
}
