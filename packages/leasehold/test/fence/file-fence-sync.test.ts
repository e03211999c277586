import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { fileFence } from '../../src/fence/index.ts'

/** Tests delay the sync, because killing a process does not show whether the fence waited for it. */
const held = vi.hoisted(() => ({ back: false, ends: [] as ((error: Error | null) => void)[] }))

vi.mock('node:fs', async (importOriginal) => {
  const real = await importOriginal<typeof import('node:fs')>()
  const fdatasync = (descriptor: number, end: (error: Error | null) => void) => {
    if (held.back) held.ends.push(end)
    else real.fdatasync(descriptor, end)
  }
  return { ...real, fdatasync }
})

describe('a fence in a folder answers', () => {
  let folder: string

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'leasehold-fence-sync-'))
    held.back = false
    held.ends = []
  })

  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  async function settled(promise: Promise<unknown>): Promise<boolean> {
    let isSettled = false
    const note = () => {
      isSettled = true
    }
    promise.then(note, note)
    for (let turns = 0; turns < 5; turns++) await turn()
    return isSettled
  }

  it('when the record is on disk, for admissions and refusals, with one sync for many calls', async () => {
    const fence = await fileFence(folder)
    held.back = true
    const yes = fence.admit('a', 10)
    const no = fence.admit('a', 9)
    const more = [11, 12, 13].map((token) => fence.admit('a', token))
    expect(await settled(Promise.race([yes, no, ...more]))).toBe(false)
    expect(held.ends).toHaveLength(1)
    held.ends.shift()!(null)
    // The first sync covers only what was written when it began.
    expect(await settled(yes)).toBe(true)
    await expect(no).rejects.toMatchObject({ code: 'stale-token', highest: 10 })
    expect(await settled(Promise.race(more))).toBe(false)
    held.ends.shift()!(null)
    await Promise.all(more)
    // What is already on disk needs no other sync.
    await fence.admit('a', 13)
    await expect(fence.admit('a', 12)).rejects.toMatchObject({ code: 'stale-token' })
    expect(held.ends).toEqual([])
    await fence.close()
  })

  it('for a record of another process only when that is on disk', async () => {
    const fence = await fileFence(folder)
    const other = await fileFence(folder)
    held.back = true
    const theirs = other.admit('a', 10)
    const no = fence.admit('a', 9)
    const same = fence.admit('a', 10)
    expect(held.ends).toHaveLength(2)
    held.ends.shift()!(null)
    await theirs
    expect(await settled(Promise.race([no, same]))).toBe(false)
    held.ends.shift()!(null)
    await expect(no).rejects.toMatchObject({ code: 'stale-token' })
    await same
    await Promise.all([fence.close(), other.close()])
  })

  it('with an error after the disk has failed, because what it kept is unknown', async () => {
    const fence = await fileFence(folder)
    held.back = true
    const first = fence.admit('a', 10)
    held.ends.shift()!(new Error('EIO'))
    held.back = false
    await expect(first).rejects.toMatchObject({ code: 'storage-failed', outcome: 'unknown' })
    await expect(fence.admit('a', 11)).rejects.toMatchObject({ code: 'storage-failed' })
    await fence.close()
    const again = await fileFence(folder)
    await again.admit('a', 11)
    await again.close()
  })
})
