import {
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect } from 'vitest'
import type { Clock, Random } from '../../../../src/port/index.ts'
import { lockFolder } from '../../../../src/stores/file/disk/node-lock.ts'

export const LOCKED = expect.objectContaining({ code: 'storage-locked' })

/** For each test a folder, and an opener of it that does not wait for real. */
export function ownerScene() {
  const state = {
    folder: '',
    /** How long the opener waited, each time, and whether that kept the process running. */
    pauses: [] as number[],
    keptAlive: [] as (boolean | undefined)[],
  }

  beforeEach(() => {
    state.folder = mkdtempSync(join(tmpdir(), 'leasehold-owner-'))
    state.pauses = []
    state.keptAlive = []
  })

  afterEach(() => rmSync(state.folder, { recursive: true, force: true }))

  const clock: Clock = {
    now: () => 1000,
    asleep: () => 0,
    timer: (time, run, keepAlive) => {
      state.pauses.push(time - 1000)
      state.keptAlive.push(keepAlive)
      setImmediate(run)
      return { cancel: () => {} }
    },
    defer: (run) => void setImmediate(run),
  }
  const lock = (id = 'm', chance = 0.5) => {
    const random: Random = { next: () => chance, id: () => id }
    return lockFolder(state.folder, clock, random)
  }
  const names = () => readdirSync(state.folder).sort()
  const write = (name: string, content: unknown) =>
    writeFileSync(join(state.folder, name), JSON.stringify(content))
  const read = (name: string) =>
    JSON.parse(readFileSync(join(state.folder, name), 'utf8')) as Record<string, unknown>

  /** What this process writes about itself, without the proof by a socket. */
  const describeSelf = async () => {
    const { release } = await lock('self')
    const { socket: _, ...self } = read('owner-self')
    await release()
    return self
  }

  /** A socket in the folder without a listener. Returns its inode. */
  const deadSocket = async (name: string): Promise<string> => {
    const server = createServer()
    const path = join(state.folder, name)
    await new Promise<void>((done) => void server.listen(`${path}.new`, done))
    renameSync(`${path}.new`, path)
    await new Promise((done) => server.close(done))
    return String(lstatSync(path, { bigint: true }).ino)
  }

  return { state, lock, names, write, read, describeSelf, deadSocket }
}
