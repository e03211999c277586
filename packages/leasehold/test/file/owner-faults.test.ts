import {
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import fs from 'node:fs/promises'
import net, { createServer, type Server } from 'node:net'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Clock, Random } from '../../src/port/index.ts'
import { lockFolder } from '../../src/stores/file/node-lock.ts'
import { isLocal, OwnerSocket } from '../../src/stores/file/node-socket.ts'
import { failure, onPlatform, patched } from './patched.ts'

const NETWORK = 0x6969
const GONE_PID = 2 ** 30

let folder: string
let servers: Server[]
/** How long the opener waited, each time, and whether that kept the process running. */
let pauses: number[]
let keptAlive: (boolean | undefined)[]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leasehold-owner-'))
  servers = []
  pauses = []
  keptAlive = []
})

afterEach(() => {
  for (const server of servers) server.close()
  rmSync(folder, { recursive: true, force: true })
})

const clock: Clock = {
  now: () => 1000,
  asleep: () => 0,
  timer: (time, run, keepAlive) => {
    pauses.push(time - 1000)
    keptAlive.push(keepAlive)
    setImmediate(run)
    return { cancel: () => {} }
  },
  defer: (run) => void setImmediate(run),
}

const lock = (id = 'm', chance = 0.5) => {
  const random: Random = { next: () => chance, id: () => id }
  return lockFolder(folder, clock, random)
}
const names = () => readdirSync(folder).sort()
const write = (name: string, content: unknown) =>
  writeFileSync(join(folder, name), JSON.stringify(content))
const read = (name: string) =>
  JSON.parse(readFileSync(join(folder, name), 'utf8')) as Record<string, unknown>
const locked = expect.objectContaining({ code: 'storage-locked' })

/** What this process writes down of itself, without the proof by a socket. */
async function describeSelf() {
  const { release } = await lock('self')
  const { socket: _, ...self } = read('owner-self')
  await release()
  return self
}

/** A socket in the folder on which nobody listens. Returns its inode. */
async function deadSocket(name: string): Promise<string> {
  const server = createServer()
  const path = join(folder, name)
  await new Promise<void>((done) => void server.listen(`${path}.new`, done))
  renameSync(`${path}.new`, path)
  await new Promise((done) => server.close(done))
  return String(lstatSync(path, { bigint: true }).ino)
}

/** Fails the calls that concern a file with this ending, so many times. What is not there is gone. */
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

describe('an opener whose file is taken away before it has its name', () => {
  it('puts it down again after a pause', async () => {
    const { release } = await patched(fs, { rename: failing('owner-m.tmp', 'ENOENT') }, () =>
      lock(),
    )
    expect([pauses, keptAlive]).toEqual([[10], [true]])
    expect(read('owner-m')).toMatchObject({ pid: process.pid, owns: true })
    await release()
  })

  it('owns nothing before it has said so', async () => {
    let calls = 0
    const rename = (real: typeof fs.rename) => (from: string, to: string) =>
      from.endsWith('owner-m.tmp') && ++calls === 2
        ? Promise.reject(failure('ENOENT'))
        : real(from, to)
    const { release } = await patched(fs, { rename }, () => lock())
    expect(pauses).toEqual([10])
    expect(read('owner-m')).toMatchObject({ owns: true })
    await release()
  })

  it('makes its socket anew if that is taken away', async () => {
    const rename = failing('owner-m.socket.tmp', 'ENOENT')
    const { release } = await patched(fs, { rename }, () => lock())
    expect(pauses).toEqual([10])
    expect(read('owner-m')['socket']).toBe(
      String(lstatSync(join(folder, 'owner-m.socket'), { bigint: true }).ino),
    )
    await release()
  })

  it.each(['owner-m.tmp', 'owner-m.socket.tmp'])('gives up in the end (%s)', async (name) => {
    const rename = failing(name, 'ENOENT', Infinity)
    await expect(patched(fs, { rename }, () => lock())).rejects.toEqual(locked)
    expect([pauses.length, names()]).toEqual([39, []])
  })

  it('waits for a time that is partly random', async () => {
    const rename = failing('owner-m.tmp', 'ENOENT', 2)
    const { release } = await patched(fs, { rename }, () => lock('m', 0.25))
    expect(pauses).toEqual([7.5, 7.5])
    await release()
  })
})

describe('an opener on a disk that fails', () => {
  it('is refused with storage-full if there is no space, and leaves nothing', async () => {
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

  it('does not mind a file that goes between the listing and the reading', async () => {
    const listed = ['owner-gone', 'owner-gone.tmp']
    const readdir = (real: typeof fs.readdir) => async (path: string) => [
      ...(await real(path)),
      ...listed,
    ]
    const { release } = await patched(fs, { readdir: readdir as never }, () => lock())
    expect(names()).toEqual(['owner-m', 'owner-m.socket'])
    await release()
  })

  it('fails if it cannot read who owns the folder', async () => {
    write('owner-other', await describeSelf())
    const opening = patched(fs, { lstat: failing('owner-other', 'EACCES') }, () => lock())
    await expect(opening).rejects.toMatchObject({ code: 'EACCES' })
    expect(names()).toEqual(['owner-other'])
  })

  it('does not mind that another has removed the file of a dead owner', async () => {
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

  it('does not mind that its own files are gone when it lets go', async () => {
    const { release } = await lock()
    for (const name of names()) rmSync(join(folder, name))
    await release()
  })
})

describe('an opener that finds others who ask', () => {
  it('has its own file down whenever it looks, and says that it only asks', async () => {
    write('owner-a', { ...(await describeSelf()), owns: false })
    const seen: unknown[] = []
    const lstat = (real: typeof fs.lstat) => (path: string, options: never) => {
      if (path.endsWith('owner-a'))
        seen.push(existsSync(join(folder, 'owner-m')) && read('owner-m'))
      return real(path, options)
    }
    await expect(patched(fs, { lstat: lstat as never }, () => lock())).rejects.toEqual(locked)
    expect(seen).toHaveLength(40)
    for (const each of seen) expect(each).toMatchObject({ pid: process.pid, owns: false })
  })

  it('steps back if one of them has an earlier name', async () => {
    const self = { ...(await describeSelf()), owns: false }
    for (const name of ['owner-a', 'owner-z']) write(name, self)
    await expect(lock()).rejects.toEqual(locked)
    expect(pauses.slice(0, 3)).toEqual([20, 40, 80])
  })

  it('steps back although its file has been removed already', async () => {
    write('owner-a', { ...(await describeSelf()), owns: false })
    const lstat = (real: typeof fs.lstat) => (path: string, options: never) => {
      if (path.endsWith('owner-a')) rmSync(join(folder, 'owner-m'), { force: true })
      return real(path, options)
    }
    await expect(patched(fs, { lstat: lstat as never }, () => lock())).rejects.toEqual(locked)
  })
})

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

  it('does not believe a socket', async () => {
    const socket = await deadSocket('owner-other.socket')
    write('owner-other', { ...(await describeSelf()), socket })
    await expect(far(() => lock())).rejects.toEqual(locked)
  })

  it('does not take over from another boot', async () => {
    write('owner-other', { ...(await describeSelf()), boot: 'other' })
    await expect(far(() => lock())).rejects.toEqual(locked)
  })
})

describe('an owner that has written down no socket', () => {
  it('is not judged by a socket that has its name', async () => {
    const self = await describeSelf()
    await deadSocket('owner-other.socket')
    write('owner-other', self)
    await expect(lock()).rejects.toEqual(locked)
  })
})

describe('an opener on a system that says little of itself', () => {
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

  it('leaves out what it does not know', async () => {
    const { release } = await without(() => lock())
    expect(read('owner-m')).toMatchObject({ ...UNKNOWN, pid: process.pid })
    await release()
  })

  it.each([
    ['runs', undefined, false],
    ['belongs to another user', 'EPERM', false],
    ['is not there', 'ESRCH', true],
  ])('asks for the process alone: if it %s', async (_, code, takesOver) => {
    write('owner-other', { pid: 4711, host: hostname(), owns: true, ...UNKNOWN })
    const opening = without(() => kills(code, () => lock()))
    if (!takesOver) return expect(opening).rejects.toEqual(locked)
    await (await opening).release()
    expect(names()).toEqual([])
  })

  it('does not judge a process of another machine', async () => {
    write('owner-other', { pid: 4711, host: 'far', owns: true, ...UNKNOWN })
    const opening = without(() => kills('ESRCH', () => lock()))
    await expect(opening).rejects.toMatchObject({ message: expect.stringContaining('on far') })
  })

  it('does not take over from a boot that it cannot tell from its own', async () => {
    write('owner-other', { pid: 4711, host: hostname(), owns: true, ...UNKNOWN, boot: 'b' })
    const message = expect.stringContaining(`process 4711 on ${hostname()}`)
    const opening = without(() => kills('ESRCH', () => lock()))
    await expect(opening).rejects.toMatchObject({ code: 'storage-locked', message })
  })

  it('has neither a socket nor the start of a process if it is no Linux', async () => {
    await onPlatform('darwin', async () => {
      expect(await isLocal(folder)).toBe(false)
      const { release } = await lock()
      expect([names(), read('owner-m')['started']]).toEqual([['owner-m'], ''])
      await release()
    })
  })
})

describe('a process', () => {
  const stat = (state: string, threads: number, started: string) =>
    `4711 (my (own) name) ${state} ${Array(16).fill('1').join(' ')} ${threads} 0 ${started} 9 9`

  /** An opener that is told this of every process. */
  const told = <Answer>(line: string, act: () => Promise<Answer>) =>
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
    const { release } = await told(stat(state, threads, started), () => lock())
    expect(read('owner-m')['started']).toBe(expected)
    await release()
  })

  it('of which the system says too little has no start', async () => {
    const { release } = await told('4711 (x) S 1 2', () => lock())
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
    const opening = told(stat(state, threads, '4242'), () => lock())
    if (!hasEnded) return expect(opening).rejects.toEqual(locked)
    await (await opening).release()
    expect(names()).toEqual([])
  })
})

describe('what is no file of an owner', () => {
  it('is in nobody’s way, and stays', async () => {
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
    expect(await OwnerSocket.bind(folder, 's')).toBe('unsupported')
  })

  it('leaves the folder closed', async () => {
    const socket = await OwnerSocket.bind(folder, 's')
    expect(openFiles()).not.toContain(folder)
    if (typeof socket === 'object') await socket.close()
  })

  it('survives errors of those who connect', async () => {
    let made: Server | undefined
    const create = (real: typeof net.createServer) => (listener: never) => {
      made = real(listener)
      return made
    }
    const socket = await patched(net, { createServer: create as never }, () =>
      OwnerSocket.bind(folder, 's'),
    )
    for (let count = 0; count < 2; count++) made!.emit('error', failure('EMFILE'))
    if (typeof socket === 'object') await socket.close()
  })
})
