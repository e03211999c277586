import fs, {
  chmodSync,
  constants,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import files from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock, systemRandom } from '../../../../src/port/index.ts'
import {
  holdsStore,
  listFiles,
  makeFolder,
  tighten,
} from '../../../../src/stores/file/disk/node-files.ts'
import { nodeDisk } from '../../../../src/stores/file/index.ts'
import { failure, patched } from './patched.ts'

let root: string
let umask: number

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'leasehold-disk-')))
  umask = process.umask(0)
})

afterEach(() => {
  process.umask(umask)
  rmSync(root, { recursive: true, force: true })
})

const open = (folder: string = root) => nodeDisk(folder, systemClock, systemRandom)
const modeOf = (path: string) => statSync(path).mode & 0o777
const put = (name: string, mode = 0o644) => {
  writeFileSync(join(root, name), name)
  chmodSync(join(root, name), mode)
}

/** How this process has opened the file, if it has. */
function flagsOf(path: string): number | undefined {
  for (const descriptor of readdirSync('/proc/self/fd')) {
    try {
      if (readlinkSync(`/proc/self/fd/${descriptor}`) !== path) continue
      const info = readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8')
      return Number.parseInt(/flags:\s*(\d+)/.exec(info)![1]!, 8)
    } catch {
      // The descriptor with which the folder was listed.
    }
  }
  return undefined
}

describe('a file on the disk of the machine', () => {
  it('is read and written at any place', async () => {
    const disk = await open()
    const file = await disk.create('f')
    await file.write(Buffer.from('hello'), 3)
    await file.writeDurably(Buffer.from('H'), 3)
    await file.sync()
    expect(await file.size()).toBe(8)
    expect((await file.read(3, 5)).toString()).toBe('Hello')
    expect((await file.read(4, 2)).toString()).toBe('el')
    await file.close()
    expect(readFileSync(join(root, 'f'), 'latin1')).toBe('\0\0\0Hello')
  })

  it('returns fewer bytes than requested only at its end', async () => {
    put('f')
    const file = await (await open()).open('f')
    expect((await file.read(0, 100)).toString()).toBe('f')
    expect(await file.read(5, 100)).toHaveLength(0)
    await file.close()
  })

  it('can be larger than one read or write', async () => {
    const bytes = Buffer.alloc(5 << 20, 'abcdefg')
    const file = await (await open()).create('f')
    await file.write(bytes, 7)
    expect((await file.read(7, bytes.length)).equals(bytes)).toBe(true)
    await file.close()
  })

  it('that is open is written through to the disk, and closed when it is not needed', async () => {
    const path = join(root, 'f')
    put('f')
    const file = await (await open()).open('f')
    expect(flagsOf(path)! & constants.O_DSYNC).toBe(constants.O_DSYNC)
    expect(flagsOf(path)! & constants.O_RDWR).toBe(constants.O_RDWR)
    await file.close()
    expect(flagsOf(path)).toBeUndefined()
  })

  it('is new when it is created, and readable only by its user', async () => {
    put('f', 0o666)
    const disk = await open()
    const file = await disk.create('f')
    expect([await file.size(), modeOf(join(root, 'f'))]).toEqual([0, 0o600])
    await file.close()
  })

  it('is opened only if it exists', async () => {
    await expect((await open()).open('f')).rejects.toMatchObject({ code: 'ENOENT' })
    expect(readdirSync(root)).toEqual([])
  })

  it('is written and read to the end, although the system does a part of it at a time', async () => {
    const file = await (await open()).create('f')
    const some = (real: (...args: unknown[]) => void) =>
      ((fd: number, bytes: Buffer, offset: number, length: number, ...rest: unknown[]) => {
        if (offset + length > bytes.length) throw new RangeError('more than there is')
        real(fd, bytes, offset, Math.min(length, 3), ...rest)
      }) as never
    await patched(fs, { write: some as never, read: some as never }, async () => {
      await file.write(Buffer.from('0123456789'), 2)
      expect((await file.read(2, 10)).toString()).toBe('0123456789')
    })
    await file.close()
    expect(readFileSync(join(root, 'f'), 'latin1')).toBe('\0\x000123456789')
  })

  it('is made durable, and so are the names in its folder', async () => {
    const disk = await open()
    const file = await disk.create('f')
    const synced: string[] = []
    const fsync = (real: typeof fs.fsync) =>
      ((fd: number, done: fs.NoParamCallback) => {
        synced.push(readlinkSync(`/proc/self/fd/${fd}`))
        real(fd, done)
      }) as never
    await patched(fs, { fsync }, async () => {
      await file.sync()
      await disk.sync()
    })
    expect(synced).toEqual([join(root, 'f'), root])
    await file.close()
  })

  it('fails if it cannot be read or written', async () => {
    const file = await (await open()).create('f')
    await file.close()
    await expect(file.read(0, 1)).rejects.toMatchObject({ code: 'EBADF' })
    await expect(file.write(Buffer.from('x'), 0)).rejects.toMatchObject({ code: 'EBADF' })
  })
})

describe('a folder on the disk of the machine', () => {
  it('lists, renames and removes its files', async () => {
    const disk = await open()
    for (const name of ['a', 'b']) put(name)
    await disk.rename('a', 'c')
    await disk.remove('b')
    await disk.remove('b')
    await disk.sync()
    expect(await disk.list()).toEqual(['c'])
    expect(readFileSync(join(root, 'c'), 'utf8')).toBe('a')
    expect(flagsOf(root)).toBeUndefined()
  })

  it('goes by its real path', async () => {
    mkdirSync(join(root, 'real'))
    symlinkSync(join(root, 'real'), join(root, 'link'))
    expect((await open(join(root, 'link'))).folder).toBe(join(root, 'real'))
  })

  it.each(['', 5, null])('is not named by %j', async (folder) => {
    const opening = open(folder as string)
    await expect(opening).rejects.toMatchObject({ code: 'invalid-argument' })
  })

  it('cannot be a file', async () => {
    put('f')
    const opening = open(join(root, 'f'))
    await expect(opening).rejects.toMatchObject({
      code: 'invalid-argument',
      cause: expect.objectContaining({ code: 'EEXIST' }),
    })
  })

  it('is created for its own user alone, and its parents with the usual mode', async () => {
    await makeFolder(join(root, 'a', 'b', 'c'))
    expect(modeOf(join(root, 'a', 'b', 'c'))).toBe(0o700)
    expect(modeOf(join(root, 'a', 'b'))).toBe(0o777)
    await makeFolder(join(root, 'a', 'b', 'c'))
  })

  it('has no owner if its contents are refused', async () => {
    mkdirSync(join(root, 'log-00000001'))
    const disk = await open()
    await expect(disk.lock()).rejects.toMatchObject({ code: 'storage-damaged' })
    expect(readdirSync(root)).toEqual(['log-00000001'])
  })
})

const OWN = ['log-00000001', 'snapshot-123456789', 'manifest', 'log-00000001.tmp', 'manifest.tmp']
const FOREIGN = ['log-1', 'my-log-00000001', 'log-00000001.old', 'manifests', 'owner-x', 'notes']

describe('the files of a store', () => {
  it.each(OWN)('have names such as %s', async (name) => {
    put(name)
    expect(await holdsStore(root)).toBe(true)
    await tighten(root)
    expect(modeOf(join(root, name))).toBe(0o600)
  })

  it('do not have other names', async () => {
    for (const name of FOREIGN) put(name)
    mkdirSync(join(root, 'folder'))
    expect(await holdsStore(root)).toBe(false)
    await tighten(root)
    for (const name of FOREIGN) expect(modeOf(join(root, name)), name).toBe(0o644)
    expect((await listFiles(root)).sort()).toEqual([...FOREIGN, 'folder'].sort())
  })

  it('may be among others', async () => {
    for (const name of ['notes', 'manifest']) put(name)
    expect(await holdsStore(root)).toBe(true)
  })

  it.each([
    ['EPERM', 'another user owns it'],
    ['ENOENT', 'it is gone'],
  ])('keep their permissions if these cannot be changed: %s, %s', async (code) => {
    put('manifest')
    const chmod = () => () => Promise.reject(failure(code))
    await patched(files, { chmod: chmod as never }, () => tighten(root))
    expect(modeOf(join(root, 'manifest'))).toBe(0o644)
  })

  it('are refused if the disk fails when their permissions are changed', async () => {
    put('manifest')
    const chmod = () => () => Promise.reject(failure('EIO'))
    const tightening = patched(files, { chmod: chmod as never }, () => tighten(root))
    await expect(tightening).rejects.toMatchObject({ code: 'EIO' })
  })

  it('leave the folder unchanged if there are none yet', async () => {
    chmodSync(root, 0o755)
    put('notes')
    await tighten(root)
    expect(modeOf(root)).toBe(0o755)
  })

  it('keep permissions that are tighter already', async () => {
    put('manifest', 0o400)
    await tighten(root)
    expect(modeOf(join(root, 'manifest'))).toBe(0o400)
  })

  it('have the mode of their folder changed only if an earlier version created it', async () => {
    chmodSync(root, 0o755)
    put('manifest')
    await tighten(root)
    expect(modeOf(root)).toBe(0o755)
    put('log-00000001')
    await tighten(root)
    expect(modeOf(root)).toBe(0o755)
    rmSync(join(root, 'manifest'))
    await tighten(root)
    expect(modeOf(root)).toBe(0o700)
  })
})
