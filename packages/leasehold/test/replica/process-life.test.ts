import { expect, it } from 'vitest'
import { runNode } from '../structure/commands.ts'
import { ROOT } from '../structure/source-files.ts'

/** An engine whose client does not keep the process running while it waits for an answer. */
const PROGRAM = `
  import { MemoryLog } from 'leasehold/log'
  import { replicaStore } from 'leasehold/replica'
  const log = new MemoryLog().open()
  const append = log.append.bind(log)
  log.append = async (bytes) => {
    await new Promise((resolve) => setTimeout(resolve, 50).unref())
    return append(bytes)
  }
  const store = await replicaStore(log)
  console.log('open')
  process.exit()`

it('a replica that opens keeps the process running', async () => {
  const ran = await runNode(['--input-type=module', '--eval', PROGRAM], ROOT)
  expect(ran).toMatchObject({ code: 0, stdout: 'open\n' })
})
