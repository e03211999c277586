import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock, systemRandom } from '../../../../src/port/index.ts'
import { fileStore, nodeDisk } from '../../../../src/stores/file/index.ts'

const options = { segmentBytes: 65_536 }

describe('the owner of a folder', () => {
  let folder: string
  let children: ChildProcess[] = []

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'leasehold-lock-'))
    children = []
  })

  afterEach(() => {
    for (const child of children) child.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  })

  /** A process that opens the folder and stays. Returns its output. */
  async function holder(): Promise<{ child: ChildProcess; said: string }> {
    const script = `
      import { fileStore } from ${JSON.stringify(new URL('../../../../src/stores/file/index.ts', import.meta.url).href)}
      await fileStore(${JSON.stringify(folder)}, { segmentBytes: 65536 }).then(
        () => console.log('opened'), (error) => console.log(error.code))
      setInterval(() => {}, 1000)`
    const child = spawn(
      process.execPath,
      ['--import', 'tsx', '--input-type=module', '--eval', script],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    children.push(child)
    const [said] = await once(child.stdout!, 'data')
    return { child, said: String(said).trim() }
  }

  const owners = () => readdirSync(folder).filter((name) => /^owner-[^.]+$/.test(name))
  const left = () => readdirSync(folder).filter((name) => name.startsWith('owner'))

  it('is named to a second opener, in the same process and by another path', async () => {
    const store = await fileStore(folder, options)
    const link = `${folder}-link`
    symlinkSync(folder, link)
    for (const path of [folder, link]) {
      const refused = fileStore(path, options)
      await expect(refused).rejects.toMatchObject({ code: 'storage-locked' })
      await expect(refused).rejects.toThrow(`process ${process.pid}`)
    }
    rmSync(link)
    expect(owners()).toHaveLength(1)
    await store.close()
    expect(left()).toEqual([])
  })

  it('is followed by the next as soon as it is dead, although it released nothing', async () => {
    const { child, said } = await holder()
    expect(said).toBe('opened')
    await expect(fileStore(folder, options)).rejects.toThrow(`process ${child.pid}`)
    child.kill('SIGKILL')
    await once(child, 'exit')
    expect(owners()).toHaveLength(1)
    const store = await fileStore(folder, options)
    expect(owners()).toHaveLength(1)
    await store.close()
    expect(left()).toEqual([])
  })

  it('is exactly one, however many openers compete after a dead one', async () => {
    const { child } = await holder()
    child.kill('SIGKILL')
    await once(child, 'exit')
    const disk = await nodeDisk(folder, systemClock, systemRandom)
    for (let round = 0; round < 5; round++) {
      const tries = await Promise.allSettled(Array.from({ length: 12 }, () => disk.lock()))
      const won = tries.filter((each) => each.status === 'fulfilled')
      expect(won).toHaveLength(1)
      await won[0]!.value.release()
    }
  })

  it('is one among several processes that open together', async () => {
    const said = (await Promise.all([holder(), holder(), holder()])).map((each) => each.said)
    expect(said.sort()).toEqual(['opened', 'storage-locked', 'storage-locked'])
  }, 20_000)

  it('is not treated as dead if its file is unreadable', async () => {
    writeFileSync(join(folder, 'owner-nobody'), 'nonsense')
    await expect(fileStore(folder, options)).rejects.toThrow('does not say which')
  })

  it.each([
    ['a fifo', (path: string) => execFileSync('mkfifo', [path])],
    ['a folder', (path: string) => mkdirSync(path)],
    ['a symbolic link', (path: string) => symlinkSync('nowhere', path)],
  ])('may be named by %s, which is refused and not waited for', async (_, make) => {
    const path = join(folder, 'owner-strange')
    make(path)
    const refused = fileStore(folder, options)
    await expect(refused).rejects.toMatchObject({ code: 'storage-locked' })
    await expect(refused).rejects.toThrow(`${path} does not say which`)
    expect(left()).toEqual(['owner-strange'])
  })

  it('is not treated as dead because its socket was replaced', async () => {
    const { child } = await holder()
    const [socket] = left().filter((name) => name.endsWith('.socket'))
    const path = join(folder, socket!)
    rmSync(path)
    await expect(fileStore(folder, options)).rejects.toThrow(`process ${child.pid}`)
    // A socket without a listener, as in a copy of the folder.
    const server = createServer().listen(`${path}.other`)
    await once(server, 'listening')
    renameSync(`${path}.other`, path)
    server.close()
    await expect(fileStore(folder, options)).rejects.toThrow(`process ${child.pid}`)
  })

  it('does not count as dead while it is frozen', async () => {
    const { child } = await holder()
    child.kill('SIGSTOP')
    await expect(fileStore(folder, options)).rejects.toThrow(`process ${child.pid}`)
  })

  it('that had the same process id before a reboot is dead', async () => {
    const before = { pid: process.pid, started: '1', host: hostname(), boot: 'x', pidNamespace: '' }
    writeFileSync(join(folder, 'owner-before'), JSON.stringify(before))
    const store = await fileStore(folder, options)
    await store.close()
  })

  it('keeps no process running', async () => {
    const script = `
      import { fileStore } from ${JSON.stringify(new URL('../../../../src/stores/file/index.ts', import.meta.url).href)}
      const store = await fileStore(${JSON.stringify(folder)}, { segmentBytes: 65536 })
      await store.grant({ holder: 'h', ttl: 60_000, maxLife: 100_000 })
      console.log('done')`
    const child = spawn(
      process.execPath,
      ['--import', 'tsx', '--input-type=module', '--eval', script],
      { stdio: ['ignore', 'ignore', 'inherit'] },
    )
    children.push(child)
    expect((await once(child, 'exit'))[0]).toBe(0)
  })
})
