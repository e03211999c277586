import fs from 'node:fs/promises'
import { hostname } from 'node:os'
import { describe, expect, it } from 'vitest'
import { isLocal } from '../../../../src/stores/file/disk/node-socket.ts'
import { LOCKED, ownerScene } from './owner-scene.ts'
import { failure, onPlatform, patched } from './patched.ts'

const NETWORK = 0x6969

const { state, lock, names, write, read, describeSelf, deadSocket } = ownerScene()

describe('an opener on a file system of another machine', () => {
  const far = <Answer>(act: () => Promise<Answer>) =>
    patched(fs, { statfs: () => (async () => ({ type: NETWORK })) as never }, act)

  it('has no socket', async () => {
    const { release } = await far(() => lock())
    expect([names(), read('owner-m')]).toEqual([
      ['owner-m'],
      expect.not.objectContaining({ socket: expect.anything() }),
    ])
    await release()
    expect(names()).toEqual([])
  })

  it('does not rely on a socket', async () => {
    const socket = await deadSocket('owner-other.socket')
    write('owner-other', { ...(await describeSelf()), socket })
    await expect(far(() => lock())).rejects.toEqual(LOCKED)
  })

  it('does not take over from another boot', async () => {
    write('owner-other', { ...(await describeSelf()), boot: 'other' })
    await expect(far(() => lock())).rejects.toEqual(LOCKED)
  })
})

describe('an owner that has written down no socket', () => {
  it('is not checked by a socket that happens to have its name', async () => {
    const self = await describeSelf()
    await deadSocket('owner-other.socket')
    write('owner-other', self)
    await expect(lock()).rejects.toEqual(LOCKED)
  })
})

describe('an opener on a system with little information about processes', () => {
  const text = (path: unknown) => typeof path === 'string' && path.startsWith('/proc/')
  const without = <Answer>(act: () => Promise<Answer>) =>
    patched(
      fs,
      {
        readFile: ((real: (...args: unknown[]) => unknown) =>
          (...args: unknown[]) =>
            text(args[0]) ? Promise.reject(failure('ENOENT')) : real(...args)) as never,
        readlink: () => (() => Promise.reject(failure('ENOENT'))) as never,
      },
      act,
    )
  const UNKNOWN = { started: '', boot: '', pidNamespace: '' }
  const kills = async <Answer>(code: string | undefined, act: () => Promise<Answer>) => {
    const real = process.kill
    process.kill = () => {
      if (code) throw failure(code)
      return true
    }
    try {
      return await act()
    } finally {
      process.kill = real
    }
  }

  it('leaves out unknown facts', async () => {
    const { release } = await without(() => lock())
    expect(read('owner-m')).toMatchObject({ ...UNKNOWN, pid: process.pid })
    await release()
  })

  it.each([
    ['runs', undefined, false],
    ['belongs to another user', 'EPERM', false],
    ['is not there', 'ESRCH', true],
  ])('checks only the process: if it %s', async (_, code, takesOver) => {
    write('owner-other', { pid: 4711, host: hostname(), owns: true, ...UNKNOWN })
    const opening = without(() => kills(code, () => lock()))
    if (!takesOver) return expect(opening).rejects.toEqual(LOCKED)
    await (await opening).release()
    expect(names()).toEqual([])
  })

  it('decides nothing about a process of another machine', async () => {
    write('owner-other', { pid: 4711, host: 'far', owns: true, ...UNKNOWN })
    const opening = without(() => kills('ESRCH', () => lock()))
    await expect(opening).rejects.toMatchObject({ message: expect.stringContaining('on far') })
  })

  it('does not take over from a boot that may be its own', async () => {
    write('owner-other', { pid: 4711, host: hostname(), owns: true, ...UNKNOWN, boot: 'b' })
    const message = expect.stringContaining(`process 4711 on ${hostname()}`)
    const opening = without(() => kills('ESRCH', () => lock()))
    await expect(opening).rejects.toMatchObject({ code: 'storage-locked', message })
  })

  it('has neither a socket nor the start of a process on systems other than Linux', async () => {
    await onPlatform('darwin', async () => {
      expect(await isLocal(state.folder)).toBe(false)
      const { release } = await lock()
      expect([names(), read('owner-m')['started']]).toEqual([['owner-m'], ''])
      await release()
    })
  })
})

describe('a process', () => {
  const stat = (state: string, threads: number, started: string) =>
    `4711 (my (own) name) ${state} ${Array(16).fill('1').join(' ')} ${threads} 0 ${started} 9 9`

  /** An opener that gets this answer for every process. */
  const withStat = <Answer>(line: string, act: () => Promise<Answer>) =>
    patched(
      fs,
      {
        readFile: ((real: (...args: unknown[]) => unknown) =>
          (...args: unknown[]) =>
            /^\/proc\/\d+\/stat$/.test(String(args[0]))
              ? Promise.resolve(line)
              : real(...args)) as never,
      },
      act,
    )

  it.each([
    ['S', 1, '4242', '4242'],
    ['R', 3, '17', '17'],
  ])('in state %s with %i threads started at %s', async (state, threads, started, expected) => {
    const { release } = await withStat(stat(state, threads, started), () => lock())
    expect(read('owner-m')['started']).toBe(expected)
    await release()
  })

  it('without complete information from the system has no start time', async () => {
    const { release } = await withStat('4711 (x) S 1 2', () => lock())
    expect(read('owner-m')['started']).toBe('')
    await release()
  })

  it.each([
    ['S', 1, false],
    ['S', 2, false],
    ['Z', 1, true],
    ['X', 1, true],
    ['Z', 2, false],
    ['X', 2, false],
  ])('in state %s with %i threads has ended: %s', async (state, threads, hasEnded) => {
    write('owner-other', { ...(await describeSelf()), pid: 4711, started: '4242' })
    const opening = withStat(stat(state, threads, '4242'), () => lock())
    if (!hasEnded) return expect(opening).rejects.toEqual(LOCKED)
    await (await opening).release()
    expect(names()).toEqual([])
  })
})
