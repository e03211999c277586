import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import fs from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LeaseholdError, type LeaseStore, type Notice } from '../../../../src/port/index.ts'
import { copyFolder, fileStore } from '../../../../src/stores/file/index.ts'
import { failure, patched } from '../disk/patched.ts'
import { contents } from '../harness.ts'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'leasehold-restore-'))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const SMALL = { segmentBytes: 65_536 }

async function hold(store: LeaseStore, key: string) {
  const granted = await store.grant({ holder: 'a', ttl: 60_000, claims: [{ key }] })
  if (granted.outcome === 'busy') throw new Error('busy')
  return granted
}

describe('a store that is opened with tokensAbove', () => {
  it('gives higher tokens from then on, at this opening and at later ones', async () => {
    const first = await fileStore(root, SMALL)
    const { lease } = await hold(first, 'k')
    await first.close()
    const raised = await fileStore(root, { ...SMALL, tokensAbove: 1000 })
    expect((await raised.read({ lease })).lease?.claims).toBe(1)
    // It is durable although no token was given.
    await raised.close()
    const later = await fileStore(root, SMALL)
    expect((await hold(later, 'l')).token).toBe(1001)
    expect((await later.read({ key: 'k' })).claims[0]?.token).toBe(1)
    await later.close()
  })

  it('makes earlier watches read again, even at later openings', async () => {
    const first = await fileStore(root, SMALL)
    await hold(first, 'k')
    await first.close()
    const raised = await fileStore(root, { ...SMALL, tokensAbove: 1000 })
    await hold(raised, 'l')
    await raised.close()
    const store = await fileStore(root, SMALL)
    // This one had seen revisions that the copy does not have.
    const notice = await new Promise<Notice>((resolve) => {
      store.watch({ prefix: '', from: 500 }, resolve)
    })
    expect(notice).toEqual({ type: 'compacted', oldest: expect.any(Number) })
    await store.close()
  })

  it('is unchanged if its tokens are higher already', async () => {
    const store = await fileStore(root, { ...SMALL, tokensAbove: 50 })
    expect((await hold(store, 'k')).token).toBe(51)
    await store.close()
    const again = await fileStore(root, { ...SMALL, tokensAbove: 50 })
    expect((await hold(again, 'l')).token).toBe(52)
    await again.close()
    await expect(fileStore(root, { tokensAbove: 1.5 })).rejects.toThrow(/tokensAbove is 1\.5/)
  })
})

describe('tokens that were raised', () => {
  it('stay above when any file is lost right after', async () => {
    const first = await fileStore(root, { ...SMALL, snapshotBytes: 0 })
    for (let at = 0; at < 5; at++) await hold(first, `k/${at}`)
    await expect.poll(() => readdirSync(root).join()).toMatch(/snapshot-\d+(?!.*tmp)/)
    await first.close()
    await (await fileStore(root, { ...SMALL, tokensAbove: 1000 })).close()
    const copy = `${root}-copy`
    for (const name of readdirSync(root)) {
      cpSync(root, copy, { recursive: true })
      rmSync(join(copy, name))
      const token = await fileStore(copy, SMALL).then(
        async (store) => {
          const { token } = await hold(store, 'next')
          await store.close()
          return token
        },
        (error: { code: string }) => error.code,
      )
      if (token !== 'storage-damaged') expect(token, name).toBe(1001)
      rmSync(copy, { recursive: true })
    }
  })
})

describe('a copy of a folder', () => {
  // A copy from front to back would miss such a write although it copies later ones: in the
  // eleventh page, where the log ends, after the sixteen of the prepared segment; and in the first
  // segment before the second one is used.
  it.each([
    ['pages', 27, 6],
    ['segments', 16, 14],
  ])(
    'is the log of one moment, whatever is written between two of its %s',
    async (_, when, grants) => {
      const folder = join(root, 'data')
      const store = await fileStore(folder, SMALL)
      let written = 0
      const hear = async () => {
        // Half a page, so that the log grows through pages and segments.
        const claims = [{ key: `k/${written++}`, value: 'x'.repeat(2000) }]
        await store.grant({ holder: 'a', ttl: 60_000, claims })
      }
      for (let at = 0; at < 20; at++) await hear()
      // The next segment is prepared in the background: it grows to its full size.
      const countPages = () =>
        readdirSync(folder)
          .filter((name) => name.startsWith('log-'))
          .reduce((sum, name) => sum + statSync(join(folder, name)).size / 4096, 0)
      await expect.poll(countPages).toBe(32)
      const pages = countPages()
      let copies = 0
      await copyFolder(folder, join(root, 'copy'), async () => {
        if (++copies === when) for (let at = 0; at < grants; at++) await hear()
      })
      expect(copies).toBeGreaterThan(16)
      // It was complete at the first attempt, not only at a later one.
      expect(copies).toBeLessThanOrEqual(pages)
      const copy = await fileStore(join(root, 'copy'), SMALL)
      const { keys } = await copy.read({ prefix: 'k/' })
      expect(keys.length).toBeGreaterThanOrEqual(20)
      expect(keys.map(({ key }) => Number(key.slice(2))).sort((a, b) => a - b)).toEqual(
        keys.map((_, at) => at),
      )
      await copy.close()
      await store.close()
    },
  )

  it('is equal to the store if that is idle', async () => {
    const folder = join(root, 'data')
    const store = await fileStore(folder, SMALL)
    for (let at = 0; at < 300; at++) await hold(store, `k/${at}`)
    await copyFolder(folder, join(root, 'copy'))
    const was = await contents(store)
    await store.close()
    const copy = await fileStore(join(root, 'copy'), SMALL)
    expect(await contents(copy)).toEqual(was)
    await copy.close()
  })

  it('is refused if the folder holds no store, or the target is not empty', async () => {
    const empty = join(root, 'empty')
    const code = 'invalid-argument'
    await expect(copyFolder(root, empty)).rejects.toThrow(/holds no store/)
    await expect(copyFolder(root, empty)).rejects.toMatchObject({ code })
    await (await fileStore(join(root, 'data'), SMALL)).close()
    writeFileSync(join(empty, 'x'), '')
    await expect(copyFolder(join(root, 'data'), empty)).rejects.toThrow(/is not empty/)
    await expect(copyFolder(join(root, 'data'), empty)).rejects.toMatchObject({ code })
  })

  it('does not hide damage', async () => {
    const folder = join(root, 'data')
    const store = await fileStore(folder, SMALL)
    await hold(store, 'k')
    await hold(store, 'l')
    await store.close()
    const damaged = join(root, 'damaged')
    cpSync(folder, damaged, { recursive: true })
    writeFileSync(join(damaged, 'log-00000001'), 'not a log')
    const copy = copyFolder(damaged, join(root, 'copy'))
    await expect(copy).rejects.toMatchObject({ code: 'storage-damaged' })
    expect(readdirSync(join(root, 'copy'))).toEqual([])
  })

  it('leaves unwritten parts as holes, and no file open', async () => {
    const folder = join(root, 'data')
    await (await fileStore(folder, { segmentBytes: 1 << 20 })).close()
    await copyFolder(folder, join(root, 'copy'))
    const { blocks, size } = statSync(join(root, 'copy', 'log-00000002'))
    expect(size).toBe(1 << 20)
    expect(blocks * 512).toBeLessThan(size / 4)
    const open = readdirSync('/proc/self/fd').flatMap((descriptor) => {
      try {
        return [readlinkSync(`/proc/self/fd/${descriptor}`)]
      } catch {
        // The descriptor with which the folder was listed.
        return []
      }
    })
    expect(open.filter((path) => path.startsWith(root))).toEqual([])
  })

  describe('with a failed attempt', () => {
    /** Copies while this many attempts fail. Returns the number of attempts. */
    async function attempts(error: Error, failures: number, act = copyFolder) {
      const folder = join(root, 'data')
      await (await fileStore(folder, SMALL)).close()
      let pages = 0
      let count = 0
      const copied = act(folder, join(root, 'copy'), async () => {
        if (pages++ % 32 !== 0) return
        if (++count > failures) return
        pages = 0
        throw error
      })
      const code = await copied.then(
        () => 'copied',
        (refused: { code: string }) => refused.code,
      )
      return { code, count }
    }
    const damaged = new LeaseholdError('storage-damaged', 'it was caught in the middle')

    it.each([
      ['a file was gone', failure('ENOENT')],
      ['a page was caught in the middle', damaged],
    ])('is made again, because %s', async (_, error) => {
      expect(await attempts(error, 3)).toEqual({ code: 'copied', count: 4 })
    })

    it('is given up after ten', async () => {
      expect(await attempts(damaged, Infinity)).toEqual({ code: 'storage-damaged', count: 10 })
      expect(readdirSync(join(root, 'copy'))).toEqual([])
    })

    it('fails at once if the disk fails', async () => {
      expect(await attempts(failure('EIO'), Infinity)).toEqual({ code: 'EIO', count: 1 })
    })

    it('is removed, whatever is missing already', async () => {
      const readdir = (real: typeof fs.readdir) => async (path: string, options: never) => {
        const names = await real(path, options)
        return names.length > 0 && path.endsWith('copy') ? [...names, 'gone' as never] : names
      }
      const act: typeof copyFolder = (...args) =>
        patched(fs, { readdir: readdir as never }, () => copyFolder(...args))
      expect(await attempts(failure('EIO'), Infinity, act)).toEqual({ code: 'EIO', count: 1 })
    })
  })
})
