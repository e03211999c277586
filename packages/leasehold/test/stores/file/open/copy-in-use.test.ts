import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { copyFolder, fileStore } from '../../../../src/stores/file/index.ts'

const SMALL = { segmentBytes: 65_536 }

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'leasehold-copy-'))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

it('a copy of a store in use has all that was answered before the copy began', async () => {
  const folder = join(root, 'data')
  const store = await fileStore(folder, { ...SMALL, snapshotBytes: 100_000 })
  const hold = (key: string) => store.grant({ holder: 'a', ttl: 60_000, claims: [{ key }] })
  await hold('before')
  let stop = false
  let count = 0
  const busy = Array.from({ length: 8 }, async () => {
    while (!stop) {
      const { lease } = (await hold(`k/${count++}`)) as { lease: string }
      if (count % 3 !== 0) await store.revoke({ target: { lease } })
    }
  })
  // Until the log has gone through several segments and snapshots, however slow the machine is.
  for (let at = 0; at < 10 || readdirSync(folder).includes('log-00000001'); at++) {
    const { revision: least } = await store.read({ key: 'before' })
    const to = join(root, `copy-${at}`)
    const revision = await copyFolder(folder, to)
    expect(revision).toBeGreaterThanOrEqual(least)
    const copy = await fileStore(to, SMALL)
    expect((await copy.read({ key: 'before' })).holders).toBe(1)
    await copy.close()
    rmSync(to, { recursive: true })
  }
  stop = true
  await Promise.all(busy)
  await store.close()
})
