/** `full-disk.test.ts` runs this in a separate file system of three megabytes. */
import assert from 'node:assert/strict'
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { fileStore } from '../../../../src/stores/file/index.ts'

const root = process.argv[2]!
const folder = join(root, 'store')
const filler = join(root, 'filler')
const options = { segmentBytes: 256 * 1024, snapshotBytes: 1 << 20 }

/** Leaves at most this many bytes of the file system. */
function fill(leave: number): void {
  const descriptor = openSync(filler, 'a')
  const block = Buffer.alloc(4096)
  let written = 0
  try {
    for (;;) written += writeSync(descriptor, block)
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC')
  }
  closeSync(descriptor)
  if (leave > 0) {
    rmSync(filler)
    const again = openSync(filler, 'a')
    for (let left = written - leave; left > 0; left -= block.length) writeSync(again, block)
    closeSync(again)
  }
}

async function until(what: () => Promise<unknown>): Promise<void> {
  for (const start = Date.now(); Date.now() - start < 5000; ) {
    try {
      await what()
      return
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  await what()
}

let store = await fileStore(folder, options)
const held = new Map<string, string>()
let number = 0
async function grant(): Promise<void> {
  const key = `key-${number++}`
  const claims = [{ key, value: 'v'.repeat(2000) }]
  const granted = await store.grant({ holder: 'h', ttl: Infinity, claims })
  assert(granted.outcome === 'granted')
  held.set(key, granted.lease)
}
async function check(): Promise<void> {
  const { leases } = await store.read({ leases: true })
  assert.deepEqual(leases.map(({ id }) => id).sort(), [...held.values()].sort())
}

for (let round = 0; round < 3; round++) {
  fill(100 * 1024)
  let refusal: { code?: string; outcome?: string } = {}
  while (refusal.code === undefined) {
    await grant().catch((error) => {
      refusal = error
    })
  }
  assert.equal(refusal.code, 'storage-full')
  assert.equal(refusal.outcome, 'refused')
  await check()
  for (const [key, lease] of [...held].slice(0, 20)) {
    await store.revoke({ target: { lease } })
    held.delete(key)
  }
  await check()
  if (round === 1) {
    await store.close()
    fill(0)
    await fileStore(folder, options).then(
      async (opened) => {
        store = opened
        await check()
        await store.close()
      },
      (error) => assert.equal(error.code, 'storage-full'),
    )
    rmSync(filler)
    store = await fileStore(folder, options)
    await check()
  } else {
    rmSync(filler)
  }
  await until(grant)
  for (let count = 0; count < 50; count++) await grant()
  for (const [key, lease] of [...held].slice(0, held.size - 30)) {
    await store.revoke({ target: { lease } })
    held.delete(key)
  }
}
await store.close()
store = await fileStore(folder, options)
await check()
await store.close()
console.log('all is there')
