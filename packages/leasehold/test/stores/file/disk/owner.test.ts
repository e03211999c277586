import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type Server } from 'node:net'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Clock, Random } from '../../../../src/port/index.ts'
import { lockFolder } from '../../../../src/stores/file/disk/node-lock.ts'
import { isLocal, OwnerSocket, probeSocket } from '../../../../src/stores/file/disk/node-socket.ts'

let folder: string
let servers: Server[]
/** How long the opener waited, each time. */
let pauses: number[]
/** Called before each wait ends. */
let between: (pause: number) => void

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'leasehold-owner-'))
  servers = []
  pauses = []
  between = () => {}
})

afterEach(() => {
  for (const server of servers) server.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Waits no longer than a turn, and notes how long it should have waited. */
const clock: Clock = {
  now: () => 1000,
  asleep: () => 0,
  timer: (time, run) => {
    pauses.push(time - 1000)
    setImmediate(() => {
      between(pauses.length)
      run()
    })
    return { cancel: () => {} }
  },
  defer: (run) => void setImmediate(run),
}

const lock = (id = 'm') => {
  const random: Random = { next: () => 0.5, id: () => id }
  return lockFolder(folder, clock, random)
}
const names = () => readdirSync(folder).sort()
const write = (name: string, content: unknown) =>
  writeFileSync(join(folder, name), JSON.stringify(content))
const locked = (message: string) =>
  expect.objectContaining({ code: 'storage-locked', message: expect.stringContaining(message) })

/** What this process writes about itself, without the proof by a socket. */
async function describeSelf() {
  const { release } = await lock('self')
  const { socket: _, ...self } = JSON.parse(readFileSync(join(folder, 'owner-self'), 'utf8'))
  await release()
  return self as Record<string, unknown>
}

/** A socket in the folder. Returns its inode. */
async function listen(name: string, isAlive: boolean): Promise<string> {
  const server = createServer()
  servers.push(server)
  const path = join(folder, name)
  await new Promise<void>((done) => void server.listen(`${path}.new`, done))
  renameSync(`${path}.new`, path)
  if (!isAlive) await new Promise((done) => server.close(done))
  return String(lstatSync(path, { bigint: true }).ino)
}

describe('an owner', () => {
  it('identifies itself, readable only by its user, and removes its files at the end', async () => {
    const { release } = await lock()
    expect(names()).toEqual(['owner-m', 'owner-m.socket'])
    for (const name of names()) expect(lstatSync(join(folder, name)).mode & 0o777).toBe(0o600)
    expect(JSON.parse(readFileSync(join(folder, 'owner-m'), 'utf8'))).toEqual({
      pid: process.pid,
      started: expect.stringMatching(/^\d+$/),
      host: hostname(),
      boot: readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(),
      pidNamespace: expect.stringMatching(/^pid:\[\d+\]$/),
      owns: true,
      socket: String(lstatSync(join(folder, 'owner-m.socket'), { bigint: true }).ino),
    })
    await release()
    expect(names()).toEqual([])
  })

  it('is the only one: the next is refused, and leaves nothing', async () => {
    const { release } = await lock('first')
    const before = names()
    await expect(lock('second')).rejects.toThrow(
      locked(`is owned by process ${process.pid}: a folder has one owner at a time`),
    )
    expect(names()).toEqual(before)
    expect(pauses).toEqual([])
    await release()
    await (await lock('third')).release()
  })
})

describe('an opener that finds an owner', () => {
  it.each([
    ['with the start of a running process', {}, ': a folder has one owner at a time'],
    [
      'on an unknown machine',
      { boot: '', host: 'far' },
      'on far, and this process cannot see whether',
    ],
    [
      'in another container',
      { pidNamespace: 'pid:[1]', host: 'near' },
      'on near, and this process cannot see whether',
    ],
    ['whose socket is gone, but not its process', { socket: '1' }, 'is owned by process'],
  ])('%s is refused', async (_, differences, message) => {
    write('owner-other', { ...(await describeSelf()), ...differences })
    await expect(lock()).rejects.toThrow(locked(message))
    expect(names()).toEqual(['owner-other'])
    expect(pauses).toEqual([])
  })

  it.each([
    ['that started at another time', { started: '1' }],
    ['with a process that is not there', { pid: 2 ** 30 }],
    ['of the same boot under another name, without its process', { pid: 2 ** 30, host: 'near' }],
    ['from before the machine was started again', { boot: 'other', host: 'far' }],
  ])('%s takes the folder over', async (_, differences) => {
    write('owner-other', { ...(await describeSelf()), ...differences })
    const { release } = await lock()
    expect(names()).toEqual(['owner-m', 'owner-m.socket'])
    await release()
  })

  it('whose socket has a listener is refused, wherever that process is', async () => {
    const self = await describeSelf()
    const socket = await listen('owner-other.socket', true)
    write('owner-other', { ...self, pidNamespace: 'pid:[1]', pid: 2 ** 30, socket })
    await expect(lock()).rejects.toThrow(locked('in another container: a folder has one owner'))
  })

  it('whose socket has no listener takes the folder over, wherever that process was', async () => {
    const self = await describeSelf()
    const socket = await listen('owner-other.socket', false)
    write('owner-other', { ...self, pidNamespace: 'pid:[1]', socket })
    const { release } = await lock()
    expect(names()).toEqual(['owner-m', 'owner-m.socket'])
    await release()
  })

  it("does not use a socket that is not the owner's", async () => {
    const self = await describeSelf()
    await listen('owner-other.socket', false)
    write('owner-other', { ...self, socket: '1' })
    await expect(lock()).rejects.toThrow(locked('is owned by process'))
    rmSync(join(folder, 'owner-other.socket'))
    await listen('owner-other.socket', true)
    write('owner-other', { ...self, started: '1', socket: '1' })
    await (await lock()).release()
  })

  it.each(['', 'nonsense', 'null', '{}', '{"pid":0}', '{"pid":-1}', '{"pid":1.5}', '{"pid":"1"}'])(
    'that only wrote %j is refused, with the name of the file',
    async (text) => {
      writeFileSync(join(folder, 'owner-other'), text)
      const file = join(folder, 'owner-other')
      await expect(lock()).rejects.toThrow(locked(`but ${file} does not say which`))
      expect(names()).toEqual(['owner-other'])
    },
  )
})

describe('openers that find each other', () => {
  it('wait: one with a later name steps back, each time for longer', async () => {
    write('owner-a', { ...(await describeSelf()), owns: false })
    const seen: string[][] = []
    between = () => void seen.push(names().filter((name) => !name.endsWith('.socket')))
    await expect(lock()).rejects.toThrow(locked('is owned by process'))
    expect(pauses.slice(0, 8)).toEqual([20, 40, 80, 160, 320, 500, 500, 500])
    expect(pauses).toHaveLength(39)
    for (const each of seen) expect(each).toEqual(['owner-a'])
    expect(names()).toEqual(['owner-a'])
  })

  it('wait: the one with the first name stays and checks again soon', async () => {
    write('owner-z', { ...(await describeSelf()), owns: false })
    const seen: string[][] = []
    between = (count) => {
      seen.push(names().filter((name) => !name.endsWith('.socket')))
      if (count === 3) rmSync(join(folder, 'owner-z'))
    }
    const { release } = await lock()
    expect(pauses).toEqual([10, 10, 10])
    for (const each of seen) expect(each).toEqual(['owner-m', 'owner-z'])
    await release()
  })

  it('give up at once if one of them owns the folder', async () => {
    const self = await describeSelf()
    write('owner-a', { ...self, owns: false })
    write('owner-b', self)
    await expect(lock()).rejects.toThrow(locked('is owned by process'))
    expect(pauses).toEqual([])
  })
})

describe('a new owner', () => {
  it('removes unfinished files and those of dead owners, and nothing else', async () => {
    const kept = ['notes.txt', 'owner-a b.tmp', 'owner-x.tmp.old', 'my-owner-x.tmp']
    const removed = ['owner-x.tmp', 'owner-x.socket.tmp']
    for (const name of [...kept, ...removed]) write(name, {})
    await listen('owner-dead.socket', false)
    await listen('owner-live.socket', true)
    await listen('my-owner-dead.socket', false)
    write('owner-file.socket', {})
    const { release } = await lock()
    expect(names()).toEqual(
      [
        ...[...kept, 'owner-live.socket', 'my-owner-dead.socket', 'owner-file.socket'],
        ...['owner-m', 'owner-m.socket'],
      ].sort(),
    )
    await release()
  })
})

describe('the socket of an owner', () => {
  it('proves that the owner lives, and later that it is dead', async () => {
    const socket = await OwnerSocket.bind(folder, 's')
    if (typeof socket === 'string') throw new Error(socket)
    expect(await probeSocket(folder, 's', socket.inode)).toBe('alive')
    expect(await probeSocket(folder, 's', undefined)).toBe('alive')
    expect(await probeSocket(folder, 's', '1')).toBe('unknown')
    await socket.close()
    expect(names()).toEqual([])
    expect(await probeSocket(folder, 's', socket.inode)).toBe('unknown')
    const dead = await listen('dead', false)
    expect(await probeSocket(folder, 'dead', dead)).toBe('dead')
  })

  it('can be in a folder with a path that is too long for a socket', async () => {
    folder = join(folder, 'x'.repeat(200))
    mkdirSync(folder)
    const { release } = await lock()
    expect(names()).toEqual(['owner-m', 'owner-m.socket'])
    await expect(lock('n')).rejects.toThrow(locked(`process ${process.pid}`))
    await release()
  })

  it('is unsupported if none can be created', async () => {
    expect(await OwnerSocket.bind(join(folder, 'missing'), 's')).toBe('unsupported')
  })

  it('proves nothing on a file system that is not of this machine', async () => {
    expect(await isLocal('/proc')).toBe(false)
  })
})
