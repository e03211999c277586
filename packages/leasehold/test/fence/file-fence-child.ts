/**
 * Run by `file-fence.test.ts`: asks the fence in a folder as hard as it can, until it is killed, and
 * says of each try what became of it. Its tokens are times, which all processes of a machine have
 * in common: that of a holder of now, or of one that comes up to a few milliseconds late.
 */
import { writeSync } from 'node:fs'
import { fileFence } from '../../src/fence/index.ts'
import { isLeaseholdError } from '../../src/port/index.ts'

const [folder = '', resource = ''] = process.argv.slice(2)
// Whoever runs the test may be killed too, and nobody would kill this one then.
process.stdin.resume().on('end', () => process.exit())

const fence = await fileFence(folder)
const now = () => Number(process.hrtime.bigint() / 1000n)

async function lane(late: number): Promise<void> {
  for (;;) {
    const asked = now()
    const token = asked - Math.floor(Math.random() * late)
    const admitted = await fence.admit(resource, token).then(
      () => true,
      (error: unknown) => {
        if (!isLeaseholdError(error, 'stale-token')) throw error
        return false
      },
    )
    writeSync(1, `${JSON.stringify({ token, asked, answered: now(), admitted })}\n`)
  }
}

await Promise.all([1, 1, 1, 1, 100, 100, 1000, 1000, 5000, 5000].map(lane))
