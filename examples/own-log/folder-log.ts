import { link, mkdir, open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  checkEntry,
  closedError,
  type Follower,
  type Following,
  type Log,
  type LogPromises,
  type Position,
  type Snapshot,
} from 'leasehold/log'

const ENTRY_BYTES = 256 * 1024
const POLL_MS = 10

/**
 * A log in a folder, for the processes of one machine. Entry 17 is the file `entry-…17`. A
 * process gets the position by creating that file: of two that try, one succeeds.
 */
export class FolderLog implements Log {
  readonly promises: LogPromises = {
    engine: 'folder',
    durability: 'disk',
    failoverLoses: false,
    entryBytes: ENTRY_BYTES,
    timeout: 10_000,
    notes: ['Only for processes of one machine.'],
  }
  readonly #folder: string
  readonly #readers = new Set<{ isOpen: boolean }>()
  #isOpen = true
  #files = 0

  private constructor(folder: string) {
    this.#folder = folder
  }

  static async open(folder: string): Promise<FolderLog> {
    await mkdir(folder, { recursive: true })
    return new FolderLog(folder)
  }

  async append(entry: Uint8Array): Promise<Position> {
    checkEntry(entry, ENTRY_BYTES)
    const file = await this.#write([entry])
    try {
      for (let position = (await this.tail()) + 1; ; position++) {
        try {
          // A link appears with its complete content, or not at all.
          await link(file, this.#path('entry', position))
          await this.#syncFolder()
          return position
        } catch (error) {
          if (codeOf(error) !== 'EEXIST') throw error
        }
      }
    } finally {
      await rm(file)
    }
  }

  follow(after: Position, follower: Follower): Following {
    if (!this.#isOpen) throw closedError()
    const reader = { isOpen: true }
    this.#readers.add(reader)
    void this.#read(after, follower, reader)
    return {
      close: () => {
        reader.isOpen = false
        this.#readers.delete(reader)
      },
    }
  }

  async tail(): Promise<Position> {
    if (!this.#isOpen) throw closedError()
    return Math.max(await this.#trimmed(), ...(await this.#positions('entry')))
  }

  async saveSnapshot({ position, chunks }: Snapshot): Promise<void> {
    if (!this.#isOpen) throw closedError()
    const sizes = Buffer.from(`${JSON.stringify(chunks.map(({ length }) => length))}\n`)
    await rename(await this.#write([sizes, ...chunks]), this.#path('snapshot', position))
    await this.#syncFolder()
    // The highest position counts, so an older one that is saved later changes nothing.
    const saved = await this.#positions('snapshot')
    await this.#remove('snapshot', (each) => each < Math.max(...saved))
  }

  async loadSnapshot(): Promise<Snapshot | undefined> {
    if (!this.#isOpen) throw closedError()
    const position = Math.max(0, ...(await this.#positions('snapshot')))
    if (position === 0) return undefined
    const bytes = await this.#readFile('snapshot', position)
    // Another process has saved a newer one meanwhile.
    if (bytes === undefined) return this.loadSnapshot()
    let start = bytes.indexOf('\n') + 1
    const sizes = JSON.parse(bytes.toString('utf8', 0, start)) as number[]
    return {
      position,
      chunks: sizes.map((size) => {
        start += size
        return bytes.subarray(start - size, start)
      }),
    }
  }

  async trim(through: Position): Promise<void> {
    const last = Math.min(through, await this.tail())
    if (last <= (await this.#trimmed())) return
    // Stored first, so that positions never start again and nobody takes a gap for the end.
    await rename(await this.#write([Buffer.from(String(last))]), join(this.#folder, 'trimmed'))
    await this.#syncFolder()
    await this.#remove('entry', (position) => position <= last)
  }

  async close(): Promise<void> {
    this.#isOpen = false
    for (const reader of this.#readers) reader.isOpen = false
  }

  async #read(after: Position, follower: Follower, reader: { isOpen: boolean }): Promise<void> {
    try {
      const tail = await this.tail()
      if (after > tail && reader.isOpen) return follower.ended({ cause: 'ahead', tail })
      for (let next = after + 1; reader.isOpen; ) {
        const isTrimmed = (await this.#trimmed()) >= next
        const bytes = isTrimmed ? undefined : await this.#readFile('entry', next)
        if (!reader.isOpen) return
        if (isTrimmed) return follower.ended({ cause: 'trimmed' })
        if (bytes) follower.entries([{ position: next++, bytes }])
        else await new Promise((resolve) => setTimeout(resolve, POLL_MS))
      }
    } catch (error) {
      if (reader.isOpen) follower.ended({ cause: 'interrupted', error })
    }
  }

  async #trimmed(): Promise<Position> {
    return Number((await read(join(this.#folder, 'trimmed'))) ?? 0)
  }

  async #positions(kind: string): Promise<Position[]> {
    const names = await readdir(this.#folder)
    return names
      .filter((name) => name.startsWith(`${kind}-`))
      .map((name) => Number(name.slice(kind.length + 1)))
  }

  async #remove(kind: string, isOld: (position: Position) => boolean): Promise<void> {
    for (const position of (await this.#positions(kind)).filter(isOld)) {
      await rm(this.#path(kind, position), { force: true })
    }
  }

  #readFile(kind: string, position: Position): Promise<Buffer | undefined> {
    return read(this.#path(kind, position))
  }

  #path(kind: string, position: Position): string {
    return join(this.#folder, `${kind}-${String(position).padStart(16, '0')}`)
  }

  /** A file with a name of its own, whose content is on the disk. */
  async #write(parts: readonly Uint8Array[]): Promise<string> {
    if (!this.#isOpen) throw closedError()
    const path = join(this.#folder, `new-${process.pid}-${crypto.randomUUID()}-${this.#files++}`)
    await writeFile(path, parts, { flush: true })
    return path
  }

  async #syncFolder(): Promise<void> {
    const folder = await open(this.#folder)
    await folder.sync().finally(() => folder.close())
  }
}

async function read(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

function codeOf(error: unknown): unknown {
  return (error as { readonly code?: unknown }).code
}
