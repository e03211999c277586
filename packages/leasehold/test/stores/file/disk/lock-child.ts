/** Run by `container.test.ts`: opens a folder, prints the outcome, and stays. */
import { LeaseholdError } from '../../../../src/port/index.ts'
import { fileStore } from '../../../../src/stores/file/index.ts'

const [folder = ''] = process.argv.slice(2)

// The test itself may be killed too; then nobody would kill this process.
process.stdin.resume().on('end', () => process.exit())

try {
  await fileStore(folder, { segmentBytes: 65_536 })
  console.log('opened')
} catch (error) {
  if (!(error instanceof LeaseholdError)) throw error
  console.log(`${error.code}: ${error.message}`)
}
