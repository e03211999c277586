import { beforeAll, describe, expect, it } from 'vitest'
import { fileStore } from '../../../../src/stores/file/index.ts'
import { rest, SMALL, StillClock } from '../harness.ts'
import { diskError, MemoryDisk } from '../memory-disk.ts'

function open(disk: MemoryDisk, clock = new StillClock()) {
  const options = { disk, clock, limits: SMALL, segmentBytes: 4096, snapshotBytes: 8000 }
  return fileStore('memory', options)
}

/** The disk of a store that crashed with a snapshot, several segments, and this many keys. */
async function make(): Promise<{ made: MemoryDisk; keys: number }> {
  const disk = new MemoryDisk()
  const store = await open(disk)
  const count = (kind: string) =>
    [...disk.files.keys()].filter((name) => name.startsWith(kind)).length
  let keys = 0
  while (count('snapshot-') === 0 || count('log-') < 4) {
    const claims = [{ key: `k${keys++}`, value: 'v'.repeat(500) }]
    await store.grant({ holder: 'h', ttl: 60_000, claims })
    await rest(2)
  }
  const made = disk.copy()
  await store.close()
  expect(disk.openFiles).toBe(0)
  return { made, keys }
}

describe('the files of a store', () => {
  let made: MemoryDisk
  let keys: number

  beforeAll(async () => {
    const store = await make()
    made = store.made
    keys = store.keys
  })

  it('that are open are the manifest and the end of the log', async () => {
    const disk = made.copy()
    const store = await open(disk)
    await rest()
    expect(disk.openFiles).toBe(2)
    await store.close()
    expect(disk.openFiles).toBe(0)
  })

  it('are closed again if one of them is damaged, and can be opened when it is repaired', async () => {
    let refused = 0
    for (const [name, bytes] of made.files) {
      const disk = made.copy()
      for (const at of [10, 700, 4110].filter((each) => each < bytes.length)) {
        const damaged = Buffer.from(bytes)
        damaged[at]! ^= 1
        disk.files.set(name, damaged)
        const opened = await open(disk).catch((error: unknown) => error)
        // Files that the snapshot replaces are not read.
        if (opened instanceof Error) refused++
        else await (opened as Awaited<ReturnType<typeof open>>).close()
        expect(disk.openFiles, `${name} at ${at}`).toBe(0)
      }
      disk.files.set(name, Buffer.from(bytes))
      await (await open(disk)).close()
    }
    expect(refused).toBeGreaterThanOrEqual(8)
  })

  it.each(['opening', 'reading', 'writing', 'syncing'] as const)(
    'are closed again if %s fails, whenever that is, and nothing is lost',
    async (operation) => {
      let failures = 0
      for (let when = 1; ; when++) {
        const disk = made.copy()
        let count = 0
        disk.fault[operation] = () => {
          if (++count === when) throw diskError('EIO')
        }
        // A fault while the store is open is another matter.
        const opened = await open(disk).catch((error: unknown) => error)
        disk.fault = {}
        if (!(opened instanceof Error)) {
          await (opened as Awaited<ReturnType<typeof open>>).close()
          if (count < when) break
          continue
        }
        failures++
        expect(opened).toMatchObject({ code: 'storage-failed', cause: { code: 'EIO' } })
        await rest()
        expect(disk.openFiles, `${operation} ${when}`).toBe(0)
        const store = await open(disk)
        expect((await store.read({ prefix: '' })).keys).toHaveLength(keys)
        await store.close()
      }
      expect(failures).toBeGreaterThan(0)
    },
  )

  it('are closed again if a new store cannot be made', async () => {
    for (const operation of ['opening', 'writing', 'growing', 'syncing'] as const) {
      for (let when = 1; ; when++) {
        const disk = new MemoryDisk()
        let count = 0
        disk.fault[operation] = () => {
          if (++count === when) throw diskError('ENOSPC')
        }
        const opened = await open(disk).catch((error: unknown) => error)
        disk.fault = {}
        if (!(opened instanceof Error)) {
          await (opened as Awaited<ReturnType<typeof open>>).close()
          break
        }
        expect(opened).toMatchObject({ code: 'storage-full' })
        await rest()
        expect(disk.openFiles, `${operation} ${when}`).toBe(0)
        await (await open(disk)).close()
      }
    }
  })

  it('are closed again if a snapshot fails, which removes its own', async () => {
    const disk = made.copy()
    const clock = new StillClock()
    const store = await open(disk, clock)
    await rest(40)
    const snapshots = () => [...disk.files.keys()].filter((name) => name.startsWith('snapshot'))
    const before = snapshots()
    let failed = 0
    disk.fault.growing = (name) => {
      if (!name.startsWith('snapshot')) return
      failed++
      throw diskError('EIO')
    }
    for (let at = 0; at < 60 && failed === 0; at++) {
      const claims = [{ key: `l${at}`, value: 'v'.repeat(800) }]
      await store.grant({ holder: 'h', ttl: 60_000, claims })
      await rest(2)
    }
    await rest()
    expect(failed).toBe(1)
    expect([disk.openFiles, snapshots()]).toEqual([2, before])
    disk.fault = {}
    await store.close()
  })
})
