import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { copyFolder, fileStore } from '../../../../src/stores/file/index.ts'
import { contents, contentsAfterCrash, rest, SMALL, StillClock } from '../harness.ts'
import { diskError, MemoryDisk } from '../memory-disk.ts'

type Packed = Record<string, string>

/** Folders that the version before the manifest wrote, and their contents. */
const OLD = JSON.parse(readFileSync(new URL('./format-1.json', import.meta.url), 'utf8')) as {
  readonly contents: unknown
  readonly crashed: Packed
  readonly closed: Packed
}
const KEYS = ['a', 'b', 'c', 'd']

function unpack(packed: Packed): Map<string, Buffer> {
  return new Map(
    Object.entries(packed).map(([name, text]) => [name, gunzipSync(Buffer.from(text, 'base64'))]),
  )
}

function open(disk: MemoryDisk) {
  const options = { disk, clock: new StillClock(), limits: SMALL, segmentBytes: 4096 }
  return fileStore('memory', options)
}

describe.each(['closed', 'crashed'] as const)('a folder of the previous version, %s', (end) => {
  it('opens with all that was in it, and is then as safe as a new one', async () => {
    const disk = new MemoryDisk(unpack(OLD[end]))
    const store = await open(disk)
    expect(JSON.parse(JSON.stringify(await contents(store, KEYS)))).toEqual(OLD.contents)
    const first = await store.grant({ holder: 'new', ttl: 60_000, claims: [{ key: 'new' }] })
    const was = await contents(store, KEYS)
    await store.close()
    const again = await open(disk)
    expect(await contents(again, KEYS)).toEqual(was)
    const next = await again.grant({ holder: 'next', ttl: 60_000 })
    expect(next.revision).toBe(first.revision + 1)
    await again.close()
    const names = [...disk.files.keys()].sort()
    // The last segment is ready and empty.
    const ready = names.findLast((name) => name.startsWith('log'))
    expect(names).toHaveLength(5)
    for (const name of names.filter((each) => each !== ready)) {
      const copy = disk.copy()
      copy.files.delete(name)
      await expect(open(copy), name).rejects.toThrow(`${name} is missing`)
    }
  })

  it('opens after a crash during the first opening', async () => {
    const made = new MemoryDisk(unpack(OLD[end]))
    const moments: MemoryDisk[] = []
    const { rename, remove } = made
    made.rename = async (from, to) => {
      await rename.call(made, from, to)
      moments.push(made.copy())
    }
    made.remove = async (name) => {
      await remove.call(made, name)
      moments.push(made.copy())
    }
    await (await open(made)).close()
    expect(moments.length).toBeGreaterThan(1)
    for (const disk of moments) {
      const store = await open(disk)
      const is = await contentsAfterCrash(store, KEYS)
      expect(OLD.contents).toMatchObject(JSON.parse(JSON.stringify(is)))
      await store.close()
    }
  })
})

describe('a folder of the previous version whose next segment cannot be written', () => {
  const logs = (disk: MemoryDisk) => [...disk.files.keys()].filter((name) => /^log-\d+$/.test(name))
  const failing = (code: string) => {
    const disk = new MemoryDisk(unpack(OLD.closed))
    disk.fault.growing = (name) => {
      if (name.startsWith('log')) throw diskError(code)
    }
    return disk
  }

  it('opens on a full disk, without the empty segment of the old format', async () => {
    const disk = failing('ENOSPC')
    const empty = logs(disk).sort().at(-1)
    const store = await open(disk)
    expect(logs(disk)).not.toContain(empty)
    disk.fault = {}
    const again = await store.close().then(() => open(disk))
    await rest()
    expect(logs(disk)).toContain(empty)
    expect(JSON.parse(JSON.stringify(await contents(again, KEYS)))).toEqual(OLD.contents)
    await again.close()
  })

  it('does not open if the disk fails in another way', async () => {
    const disk = failing('EIO')
    await expect(open(disk)).rejects.toMatchObject({ code: 'storage-failed' })
    expect(disk.openFiles).toBe(0)
    disk.fault = {}
    await (await open(disk)).close()
  })
})

describe('a folder of the previous version, on the disk', () => {
  let root: string
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'leasehold-upgrade-'))
    chmodSync(root, 0o755)
    for (const [name, bytes] of unpack(OLD.crashed)) {
      writeFileSync(join(root, name), bytes, { mode: 0o644 })
    }
  })
  afterEach(() => rmSync(root, { recursive: true, force: true }))

  it('cannot be read by other users', async () => {
    const store = await fileStore(root, { limits: SMALL, segmentBytes: 4096 })
    expect(statSync(root).mode & 0o777).toBe(0o700)
    for (const name of Object.keys(OLD.crashed)) {
      expect(statSync(join(root, name)).mode & 0o777, name).toBe(0o600)
    }
    await store.close()
    // Later changes by the operator stay.
    chmodSync(root, 0o750)
    await (await fileStore(root, { limits: SMALL, segmentBytes: 4096 })).close()
    expect(statSync(root).mode & 0o777).toBe(0o750)
  })

  it('can be copied without an upgrade', async () => {
    const copy = join(root, 'copy')
    const { revision } = OLD.contents as { revision: number }
    expect(await copyFolder(root, copy)).toBe(revision)
  })
})
