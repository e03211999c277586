import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { readSource } from './source-files.ts'

/** How far it may be from `Leasehold.lock` on a `file:` store to the lock. */
const HOPS_MAX = 24
const FILES_MAX = 12

it('ARCHITECTURE.md names the functions that one lock() passes, and they are few', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ['scripts/lock-walk.js'])
  const walk: { function: string; file: string }[] = JSON.parse(stdout).walk
  const hops = walk.map((hop) => `${hop.function} ${hop.file}`)
  const [, section = ''] = readSource('ARCHITECTURE.md').text.split('## The walk of one')
  const written = [...section.matchAll(/^ +(\S+) {2,}(\S+\.ts)/gm)].map(
    ([, f, file]) => `${f} ${file}`,
  )
  expect(written).toEqual(hops)
  expect(hops.length).toBeLessThanOrEqual(HOPS_MAX)
  expect(new Set(walk.map(({ file }) => file)).size).toBeLessThanOrEqual(FILES_MAX)
}, 30_000)
