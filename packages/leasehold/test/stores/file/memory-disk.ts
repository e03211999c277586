import { LeaseholdError } from '../../../src/port/index.ts'
import type { Disk, DiskFile, Lock } from '../../../src/stores/file/index.ts'

export interface Fault {
  /** Called before a durable write. May throw, and may first have written a part of it. */
  writing?: (name: string, bytes: Uint8Array, position: number, file: Buffer) => void
  /** Called before a file is opened. */
  opening?: (name: string) => void
  /** Called before a file is read. */
  reading?: (name: string) => void
  /** Called before a file grows. */
  growing?: (name: string, by: number) => void
  /** Called when a file, or the folder (`.`), is made durable. */
  syncing?: (name: string) => void
}

/** A disk in memory whose files can be copied and damaged, and can fail. */
export class MemoryDisk implements Disk {
  readonly folder = 'memory'
  readonly files: Map<string, Buffer>
  fault: Fault = {}
  /** Durable writes to the log. */
  writes = 0
  /** Files that were opened and not closed. */
  openFiles = 0
  /** If set, a durable write ends only when this does. */
  gate: Promise<void> | undefined
  #locked = false

  constructor(files: Map<string, Buffer> = new Map()) {
    this.files = files
  }

  /** The same files on another disk. */
  copy(): MemoryDisk {
    const files = [...this.files].map(([name, bytes]) => [name, Buffer.from(bytes)] as const)
    return new MemoryDisk(new Map(files))
  }

  async lock(): Promise<Lock> {
    if (this.#locked) throw new LeaseholdError('storage-locked', 'it is locked')
    this.#locked = true
    return {
      release: async () => {
        this.#locked = false
      },
    }
  }

  async list(): Promise<string[]> {
    return [...this.files.keys()]
  }

  async open(name: string): Promise<DiskFile> {
    this.fault.opening?.(name)
    if (!this.files.has(name)) throw Object.assign(new Error(`no ${name}`), { code: 'ENOENT' })
    return this.#file(name)
  }

  async create(name: string): Promise<DiskFile> {
    this.files.set(name, Buffer.alloc(0))
    return this.#file(name)
  }

  async rename(from: string, to: string): Promise<void> {
    this.files.set(to, this.files.get(from)!)
    this.files.delete(from)
  }

  async remove(name: string): Promise<void> {
    this.files.delete(name)
  }

  async sync(): Promise<void> {
    this.fault.syncing?.('.')
  }

  #file(opened: string): DiskFile {
    let bytes = this.files.get(opened)!
    let name = opened
    this.openFiles++
    const write = (data: Uint8Array, position: number) => {
      if (position + data.length > bytes.length) {
        this.fault.growing?.(name, position + data.length - bytes.length)
        const grown = Buffer.alloc(position + data.length)
        bytes.copy(grown)
        for (const [at, content] of this.files) if (content === bytes) name = at
        this.files.set(name, grown)
        bytes = grown
      }
      bytes.set(data, position)
    }
    return {
      size: async () => bytes.length,
      read: async (position, length) => {
        this.fault.reading?.(name)
        if (position < 0) throw new RangeError(`${name} has no byte ${position}`)
        return Buffer.from(bytes.subarray(position, position + length))
      },
      write: async (data, position) => write(data, position),
      writeDurably: async (data, position) => {
        if (name.startsWith('log')) this.writes++
        await this.gate
        if (position + data.length > bytes.length) throw new Error(`${name} is not to grow`)
        this.fault.writing?.(name, data, position, bytes)
        write(data, position)
      },
      sync: async () => this.fault.syncing?.(name),
      close: async () => {
        this.openFiles--
      },
    }
  }
}

export function diskError(code: string): Error {
  return Object.assign(new Error(`${code}: the test makes the disk fail`), { code })
}
