import { close, constants, fdatasync, fstat, fsync, open, read, write } from 'node:fs'
import { realpath, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Clock, LeaseholdError, type Random, show, systemReason } from '../../../port/index.ts'
import type { Disk, DiskFile, Lock } from './disk.ts'
import { FILE_MODE, listFiles, makeFolder, tighten } from './node-files.ts'
import { lockFolder } from './node-lock.ts'

const openFile = promisify(open)
const closeFile = promisify(close)
const statFile = promisify(fstat)
/** Looks the function up for each call, so that a test can count the calls. */
const syncFile = promisify((descriptor: number, done: (error: Error | null) => void) =>
  fsync(descriptor, done),
)
const syncData = promisify(fdatasync)

/**
 * On Linux a write with O_DSYNC is durable when it returns, with one trip to the thread pool
 * instead of two. Other systems lack the flag; on macOS it does not flush the cache of the drive.
 * There, a sync follows the write.
 */
const SYNCHRONOUS = process.platform === 'linux' ? constants.O_DSYNC : 0

/** A folder of the file system. It is created if it does not exist. */
export async function nodeDisk(folder: string, clock: Clock, random: Random): Promise<Disk> {
  if (typeof folder !== 'string' || folder === '') {
    throw new LeaseholdError(
      'invalid-argument',
      `folder is ${show(folder)}: give the path of a folder for the store`,
    )
  }
  try {
    await makeFolder(folder)
    return new NodeDisk(await realpath(folder), clock, random)
  } catch (error) {
    throw new LeaseholdError(
      'invalid-argument',
      `folder ${show(folder)} cannot be used (${systemReason(error)}): give one that this process may create or write to`,
      { cause: error },
    )
  }
}

class NodeDisk implements Disk {
  readonly folder: string
  readonly #clock: Clock
  readonly #random: Random

  constructor(folder: string, clock: Clock, random: Random) {
    this.folder = folder
    this.#clock = clock
    this.#random = random
  }

  async lock(): Promise<Lock> {
    const lock = await lockFolder(this.folder, this.#clock, this.#random)
    try {
      await tighten(this.folder)
      return lock
    } catch (error) {
      await lock.release()
      throw error
    }
  }

  list(): Promise<string[]> {
    return listFiles(this.folder)
  }

  async open(name: string): Promise<DiskFile> {
    return new NodeFile(await openFile(this.#path(name), constants.O_RDWR | SYNCHRONOUS))
  }

  async create(name: string): Promise<DiskFile> {
    await this.remove(name)
    return new NodeFile(await openFile(this.#path(name), 'wx+', FILE_MODE))
  }

  rename(from: string, to: string): Promise<void> {
    return rename(this.#path(from), this.#path(to))
  }

  remove(name: string): Promise<void> {
    return rm(this.#path(name), { force: true })
  }

  async sync(): Promise<void> {
    // Windows cannot open a folder and does not need to: it makes names durable with the files.
    if (process.platform === 'win32') return
    const descriptor = await openFile(this.folder, 'r')
    try {
      await syncFile(descriptor)
    } finally {
      await closeFile(descriptor)
    }
  }

  #path(name: string): string {
    return join(this.folder, name)
  }
}

class NodeFile implements DiskFile {
  readonly #descriptor: number

  constructor(descriptor: number) {
    this.#descriptor = descriptor
  }

  async size(): Promise<number> {
    return (await statFile(this.#descriptor)).size
  }

  async read(position: number, length: number): Promise<Buffer> {
    const bytes = Buffer.allocUnsafe(length)
    let filled = 0
    while (filled < length) {
      const count = await this.#readSome(bytes, filled, position + filled)
      if (count === 0) break
      filled += count
    }
    return bytes.subarray(0, filled)
  }

  async write(bytes: Uint8Array, position: number): Promise<void> {
    let done = await this.#writeSome(bytes, 0, position)
    while (done < bytes.length) done += await this.#writeSome(bytes, done, position + done)
  }

  async writeDurably(bytes: Uint8Array, position: number): Promise<void> {
    await this.write(bytes, position)
    if (SYNCHRONOUS === 0) await syncData(this.#descriptor)
  }

  sync(): Promise<void> {
    return syncFile(this.#descriptor)
  }

  close(): Promise<void> {
    return closeFile(this.#descriptor)
  }

  #readSome(bytes: Buffer, offset: number, position: number): Promise<number> {
    return new Promise((resolve, reject) => {
      const length = bytes.length - offset
      read(this.#descriptor, bytes, offset, length, position, (error, count) => {
        if (error) reject(error)
        else resolve(count)
      })
    })
  }

  #writeSome(bytes: Uint8Array, offset: number, position: number): Promise<number> {
    return new Promise((resolve, reject) => {
      const length = bytes.length - offset
      write(this.#descriptor, bytes, offset, length, position, (error, count) => {
        if (error) reject(error)
        else resolve(count)
      })
    })
  }
}
