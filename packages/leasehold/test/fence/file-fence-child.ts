/**
 * Run by `file-fence.test.ts`: sends requests to the fence in a folder until it is killed, and prints
 * the outcome of each. Its tokens are times, because all processes of a machine share the clock: the
 * current time, or a time up to a few milliseconds ago for a late holder.
 */
import { writeSync } from 'node:fs'
import { fileFence } from '../../src/fence/index.ts'
import { isLeaseholdError } from '../../src/port/index.ts'

const [folder = '', resource = ''] = process.argv.slice(2)
// If the test runner is killed, nothing else would end this process.
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
