import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { copyFolder, type FileStoreOptions, fileStore } from '../../../../src/stores/file/index.ts'
import { contents } from '../harness.ts'

describe('opening a folder', () => {
  let root: string

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'leasehold-open-'))
  })

  afterEach(() => rmSync(root, { recursive: true, force: true }))

  it('creates it, and finds its earlier contents, including history and answers', async () => {
    const folder = join(root, 'a', 'b')
    const options = { segmentBytes: 65_536 }
    const store = await fileStore(folder, options)
    const first = { holder: 'first', ttl: 60_000, claims: [{ key: 'k', value: 'ü' }], request: 'r' }
    const granted = await store.grant(first)
    const waits = await store.grant({ holder: 'second', ttl: Infinity, claims: [{ key: 'k' }] })
    await store.release({ lease: (granted as { lease: string }).lease, keys: ['k'], token: 1 })
    const was = await contents(store, ['k'])
    await store.close()
    const again = await fileStore(folder, options)
    expect(await contents(again, ['k'])).toEqual(was)
    expect(await again.grant(first)).toEqual(granted)
    expect((await again.read({ key: 'k' })).claims[0]).toMatchObject({ token: waits.revision })
    expect(again.guarantees).toMatchObject({ engine: 'file', durability: 'disk' })
    await again.close()
    await again.close()
    await expect(again.read({ key: 'k' })).rejects.toMatchObject({ code: 'closed' })
  })

  it.each<[string, string, FileStoreOptions, string]>([
    ['no folder', '', {}, 'folder is'],
    ['a file', 'FILE', {}, 'cannot be used'],
    ['a segment too small', 'x', { segmentBytes: 100 }, 'segmentBytes is 100: it must be'],
    ['a segment without a number', 'x', { segmentBytes: Number.NaN }, 'segmentBytes is NaN'],
    ['a crooked segment', 'x', { segmentBytes: 5000 }, 'a multiple of 32'],
    ['a negative snapshot', 'x', { snapshotBytes: -1 }, 'snapshotBytes is -1'],
  ])('refuses %s', async (_, name, options, message) => {
    const file = join(root, 'FILE')
    writeFileSync(file, '')
    const refused = fileStore(name && join(root, name), options)
    await expect(refused).rejects.toMatchObject({ code: 'invalid-argument' })
    await expect(refused).rejects.toThrow(message)
  })

  it('refuses a format that it does not know', async () => {
    const store = await fileStore(root, { segmentBytes: 65_536 })
    await store.close()
    writeFileSync(join(root, 'log-00000001'), 'not a log')
    await expect(fileStore(root)).rejects.toMatchObject({ code: 'storage-damaged' })
  })

  it('creates files that only its user can read, for any umask', async () => {
    const umask = process.umask(0)
    try {
      const folder = join(root, 'parent', 'data')
      const store = await fileStore(folder, { segmentBytes: 4096, snapshotBytes: 0 })
      for (let at = 0; at < 100; at++) await store.grant({ holder: `h${at}`, ttl: 60_000 })
      await expect.poll(() => readdirSync(folder).join()).toContain('snapshot-')
      const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)
      expect(modeOf(folder)).toBe('700')
      const kinds = new Set(readdirSync(folder).map((name) => name.replace(/-[\w-]+/, '')))
      expect([...kinds].sort()).toEqual(expect.arrayContaining(['log', 'manifest', 'owner']))
      for (const name of readdirSync(folder)) {
        if (name.endsWith('.tmp')) continue
        expect(modeOf(join(folder, name)), name).toBe('600')
      }
      const copy = join(root, 'copy')
      await copyFolder(folder, copy)
      expect(modeOf(copy)).toBe('700')
      for (const name of readdirSync(copy)) expect(modeOf(join(copy, name)), name).toBe('600')
      await store.close()
    } finally {
      process.umask(umask)
    }
  })

  it("removes other users' permissions from its files", async () => {
    await (await fileStore(root, { segmentBytes: 4096 })).close()
    for (const name of readdirSync(root)) chmodSync(join(root, name), 0o644)
    writeFileSync(join(root, 'notes.txt'), '', { mode: 0o644 })
    await (await fileStore(root, { segmentBytes: 4096 })).close()
    for (const name of readdirSync(root)) {
      const mode = statSync(join(root, name)).mode & 0o777
      expect(mode, name).toBe(name === 'notes.txt' ? 0o644 : 0o600)
    }
  })

  describe.each([
    ['a fifo', (path: string) => void execFileSync('mkfifo', [path])],
    ['a folder', (path: string) => void mkdirSync(path)],
    ['a symbolic link', (path: string) => symlinkSync(`${path}.away`, path)],
    [
      'a socket',
      (path: string) => new Promise<void>((done) => void createServer().listen(path, done).unref()),
    ],
  ])('that contains %s', (what, make) => {
    it.each(['log-00000001', 'log-00000002', 'log-00000003', 'snapshot-00000009', 'manifest'])(
      'in place of %s is refused, and does not wait',
      async (name) => {
        await (await fileStore(root, { segmentBytes: 4096 })).close()
        const path = join(root, name)
        if (readdirSync(root).includes(name)) renameSync(path, `${path}.away`)
        await make(path)
        for (const use of [() => fileStore(root), () => copyFolder(root, join(root, 'copy'))]) {
          const refused = use()
          await expect(refused).rejects.toMatchObject({ code: 'storage-damaged' })
          await expect(refused).rejects.toThrow(`${path} is ${what}`)
        }
      },
    )

    it('in place of an unfinished file is refused, without waiting', async () => {
      await (await fileStore(root, { segmentBytes: 4096 })).close()
      const path = join(root, 'snapshot-00000001.tmp')
      await make(path)
      await expect(fileStore(root)).rejects.toThrow(`${path} is ${what}`)
    })
  })

  // Only Linux has /proc, where Node's recursive mkdir never returns.
  it.runIf(process.platform === 'linux')('refuses a folder that cannot be created', async () => {
    await expect(fileStore('/proc/nosuch/x')).rejects.toThrow(
      /folder "\/proc\/nosuch\/x" cannot be used \(there is no such file or folder\)/,
    )
  })
})
