/** Run by `full-disk.test.ts` in its own file system of one megabyte. */
import assert from 'node:assert/strict'
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { fileFence } from '../../src/fence/index.ts'

const root = process.argv[2]!
const filler = openSync(join(root, 'filler'), 'a')
const fence = await fileFence(join(root, 'fence'))
await fence.admit('a', 1)
try {
  for (;;) writeSync(filler, Buffer.alloc(4096))
} catch (error) {
  assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC')
}
closeSync(filler)

// The log still has room in its allocated space.
let token = 1
let refusal: { code?: string } | undefined
while (!refusal) {
  await fence.admit('a', ++token).catch((error: { code?: string }) => {
    refusal = error
  })
}
assert.equal(refusal.code, 'storage-full')
const late = { code: 'stale-token', highest: token - 1 }
await assert.rejects(fence.admit('a', token - 2), late)
await fence.admit('a', token - 1)

rmSync(join(root, 'filler'))
await fence.admit('a', token)
const again = await fileFence(join(root, 'fence'))
await assert.rejects(again.admit('a', token - 1), { code: 'stale-token', highest: token })
await again.admit('a', token + 1)
console.log('all is there')
