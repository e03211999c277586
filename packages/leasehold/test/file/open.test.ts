import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type FileStoreOptions, fileStore } from '../../src/stores/file/index.ts'
import { contents } from './harness.ts'

describe('opening a folder', () => {
  let root: string

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'leasehold-open-'))
  })

  afterEach(() => rmSync(root, { recursive: true, force: true }))

  it('makes it, and finds there what was left, history and answers included', async () => {
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
    ['a segment that is no number', 'x', { segmentBytes: Number.NaN }, 'segmentBytes is NaN'],
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
})
