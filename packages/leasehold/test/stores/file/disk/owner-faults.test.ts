import { existsSync, lstatSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import fs from 'node:fs/promises'
import net, { type Server } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { OwnerSocket } from '../../../../src/stores/file/disk/node-socket.ts'
import { LOCKED, ownerScene } from './owner-scene.ts'
import { failure, patched } from './patched.ts'

const GONE_PID = 2 ** 30

const { state, lock, names, write, read, describeSelf, deadSocket } = ownerScene()

/** Fails the first calls on files with this ending. */
const failing = (ending: string, code: string, times = 1) => {
  let left = times
  return (real: (...args: never[]) => unknown) =>
    (...args: never[]) => {
      if (!String(args[0]).endsWith(ending) || left-- <= 0) return real(...args)
      if (code === 'ENOENT') rmSync(args[0]!)
      return Promise.reject(failure(code))
    }
}

const openFiles = () =>
  readdirSync('/proc/self/fd').flatMap((descriptor) => {
    try {
      return [readlinkSync(`/proc/self/fd/${descriptor}`)]
    } catch {
      // The descriptor with which the folder was listed.
      return []
    }
  })

describe('an opener whose file is removed before it has its name', () => {
  it('writes it again after a pause', async () => {
    const { release } = await patched(fs, { rename: failing('owner-m.tmp', 'ENOENT') }, () =>
      lock(),
    )
    expect([state.pauses, state.keptAlive]).toEqual([[10], [true]])
    expect(read('owner-m')).toMatchObject({ pid: process.pid, owns: true })
    await release()
  })

  it('owns the folder only after its file says so', async () => {
    let calls = 0
    const rename = (real: typeof fs.rename) => (from: string, to: string) =>
      from.endsWith('owner-m.tmp') && ++calls === 2
        ? Promise.reject(failure('ENOENT'))
        : real(from, to)
    const { release } = await patched(fs, { rename }, () => lock())
    expect(state.pauses).toEqual([10])
    expect(read('owner-m')).toMatchObject({ owns: true })
    await release()
  })

  it('creates its socket again if that is removed', async () => {
    const rename = failing('owner-m.socket.tmp', 'ENOENT')
    const { release } = await patched(fs, { rename }, () => lock())
    expect(state.pauses).toEqual([10])
    expect(read('owner-m')['socket']).toBe(
      String(lstatSync(join(state.folder, 'owner-m.socket'), { bigint: true }).ino),
    )
    await release()
  })

  it.each(['owner-m.tmp', 'owner-m.socket.tmp'])('gives up in the end (%s)', async (name) => {
    const rename = failing(name, 'ENOENT', Infinity)
    await expect(patched(fs, { rename }, () => lock())).rejects.toEqual(LOCKED)
    expect([state.pauses.length, names()]).toEqual([39, []])
  })

  it('waits for a time that is partly random', async () => {
    const rename = failing('owner-m.tmp', 'ENOENT', 2)
    const { release } = await patched(fs, { rename }, () => lock('m', 0.25))
    expect(state.pauses).toEqual([7.5, 7.5])
    await release()
  })
})

describe('an opener on a disk that fails', () => {
  it('is refused with storage-full if the disk is full, and leaves nothing', async () => {
    const writeFile = failing('owner-m.tmp', 'ENOSPC')
    await expect(patched(fs, { writeFile }, () => lock())).rejects.toMatchObject({
      code: 'storage-full',
      cause: expect.objectContaining({ code: 'ENOSPC' }),
    })
    expect(names()).toEqual([])
  })

  it.each(['owner-m.tmp', 'owner-m.socket.tmp'])('fails as the disk does (%s)', async (name) => {
    const opening = patched(fs, { rename: failing(name, 'EIO') }, () => lock())
    await expect(opening).rejects.toMatchObject({ code: 'EIO' })
    expect(names().filter((each) => !each.endsWith('.socket.tmp'))).toEqual([])
  })

  it('ignores a file that is removed between the listing and the read', async () => {
    const listed = ['owner-gone', 'owner-gone.tmp']
    const readdir = (real: typeof fs.readdir) => async (path: string) => [
      ...(await real(path)),
      ...listed,
    ]
    const { release } = await patched(fs, { readdir: readdir as never }, () => lock())
    expect(names()).toEqual(['owner-m', 'owner-m.socket'])
    await release()
  })

  it('fails if it cannot read the owner of the folder', async () => {
    write('owner-other', await describeSelf())
    const opening = patched(fs, { lstat: failing('owner-other', 'EACCES') }, () => lock())
    await expect(opening).rejects.toMatchObject({ code: 'EACCES' })
    expect(names()).toEqual(['owner-other'])
  })

  it('ignores that another opener has removed the file of a dead owner', async () => {
    write('owner-dead', { ...(await describeSelf()), pid: GONE_PID })
    const readFile = (real: typeof fs.readFile) => async (path: string, encoding: 'utf8') => {
      const text = await real(path, encoding)
      if (path.endsWith('owner-dead')) rmSync(path)
      return text
    }
    const { release } = await patched(fs, { readFile: readFile as never }, () => lock())
    expect(names()).toEqual(['owner-m', 'owner-m.socket'])
    await release()
  })

  it('ignores that its own files are missing when it releases', async () => {
    const { release } = await lock()
    for (const name of names()) rmSync(join(state.folder, name))
    await release()
  })
})

describe('an opener that finds other openers', () => {
  it('has its own file in place whenever it looks, and says that it only requests the folder', async () => {
    write('owner-a', { ...(await describeSelf()), owns: false })
    const seen: unknown[] = []
    const lstat = (real: typeof fs.lstat) => (path: string, options: never) => {
      if (path.endsWith('owner-a'))
        seen.push(existsSync(join(state.folder, 'owner-m')) && read('owner-m'))
      return real(path, options)
    }
    await expect(patched(fs, { lstat: lstat as never }, () => lock())).rejects.toEqual(LOCKED)
    expect(seen).toHaveLength(40)
    for (const each of seen) expect(each).toMatchObject({ pid: process.pid, owns: false })
  })

  it('steps back if one of them has an earlier name', async () => {
    const self = { ...(await describeSelf()), owns: false }
    for (const name of ['owner-a', 'owner-z']) write(name, self)
    await expect(lock()).rejects.toEqual(LOCKED)
    expect(state.pauses.slice(0, 3)).toEqual([20, 40, 80])
  })

  it('steps back although its file has been removed already', async () => {
    write('owner-a', { ...(await describeSelf()), owns: false })
    const lstat = (real: typeof fs.lstat) => (path: string, options: never) => {
      if (path.endsWith('owner-a')) rmSync(join(state.folder, 'owner-m'), { force: true })
      return real(path, options)
    }
    await expect(patched(fs, { lstat: lstat as never }, () => lock())).rejects.toEqual(LOCKED)
  })
})

describe('a file that is not an owner file', () => {
  it('blocks nobody, and stays', async () => {
    write('not-owner-a', {})
    await deadSocket('owner-a.socket.old')
    write('owner-long-name.tmp', {})
    const { release } = await lock()
    expect(names()).toEqual(['not-owner-a', 'owner-a.socket.old', 'owner-m', 'owner-m.socket'])
    await release()
  })
})

describe('the socket of an owner', () => {
  it('is unsupported if another is there', async () => {
    write('s.tmp', {})
    expect(await OwnerSocket.bind(state.folder, 's')).toBe('unsupported')
  })

  it('leaves the folder closed', async () => {
    const socket = await OwnerSocket.bind(state.folder, 's')
    expect(openFiles()).not.toContain(state.folder)
    if (typeof socket === 'object') await socket.close()
  })

  it('survives errors of its connections', async () => {
    let made: Server | undefined
    const create = (real: typeof net.createServer) => (listener: never) => {
      made = real(listener)
      return made
    }
    const socket = await patched(net, { createServer: create as never }, () =>
      OwnerSocket.bind(state.folder, 's'),
    )
    for (let count = 0; count < 2; count++) made!.emit('error', failure('EMFILE'))
    if (typeof socket === 'object') await socket.close()
  })
})
