import type { Disk, DiskFile, Lock } from 'leasehold/file'

/** A disk in memory with damaged files. */
export class MemoryDisk implements Disk {
  readonly folder = 'memory'
  readonly files: Map<string, Buffer>

  constructor(files: Map<string, Buffer>) {
    this.files = files
  }

  async lock(): Promise<Lock> {
    return { release: async () => {} }
  }

  async list(): Promise<string[]> {
    return [...this.files.keys()]
  }

  async open(name: string): Promise<DiskFile> {
    if (!this.files.has(name)) throw Object.assign(new Error(`no ${name}`), { code: 'ENOENT' })
    return this.#file({ name })
  }

  async create(name: string): Promise<DiskFile> {
    this.files.set(name, Buffer.alloc(0))
    return this.#file({ name })
  }

  async rename(from: string, to: string): Promise<void> {
    this.files.set(to, this.files.get(from)!)
    this.files.delete(from)
  }

  async remove(name: string): Promise<void> {
    this.files.delete(name)
  }

  async sync(): Promise<void> {}

  #file(at: { name: string }): DiskFile {
    const content = () => this.files.get(at.name) ?? Buffer.alloc(0)
    const write = async (data: Uint8Array, position: number) => {
      const old = content()
      if (position + data.length <= old.length) {
        old.set(data, position)
        return
      }
      const grown = Buffer.alloc(position + data.length)
      old.copy(grown)
      grown.set(data, position)
      this.files.set(at.name, grown)
    }
    return {
      size: async () => content().length,
      read: async (position, length) =>
        Buffer.from(content().subarray(position, position + length)),
      write,
      writeDurably: write,
      sync: async () => {},
      close: async () => {},
    }
  }
}
