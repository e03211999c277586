/**
 * The disk as the file store needs it. All effects of the store on the outside world go through
 * this interface. So tests can use a simulated disk that is slow, fails or loses its power. The
 * real one is in `node-disk.ts`.
 *
 * A failure is a rejected promise whose error has a `code` like Node's: `ENOSPC`, `EIO`, ….
 */
export interface Disk {
  /** The name of the folder in messages. */
  readonly folder: string

  /**
   * Makes the caller the only owner of the folder; rejected with `storage-locked` if there is
   * another. An owner that died without a release does not count.
   */
  lock(): Promise<Lock>

  /** The names of the files in the folder. */
  list(): Promise<string[]>

  /** Opens an existing file for reading and for writing in place. */
  open(name: string): Promise<DiskFile>

  /** Creates an empty file, and replaces one with the same name. */
  create(name: string): Promise<DiskFile>

  /** Renames a file in one step. Durable after `sync`. */
  rename(from: string, to: string): Promise<void>

  /** Removes a file, if it exists. */
  remove(name: string): Promise<void>

  /** Makes the list of files and their names durable. */
  sync(): Promise<void>
}

export interface DiskFile {
  size(): Promise<number>

  /** Reads `length` bytes at `position`; fewer only at the end of the file. */
  read(position: number, length: number): Promise<Buffer>

  /** Writes; durable after `sync`. */
  write(bytes: Uint8Array, position: number): Promise<void>

  /**
   * Writes within the file's present size; fulfilled when the bytes are durable. If the power fails
   * meanwhile, or if it is rejected, each of the 512-byte sectors concerned may be the old or the
   * new one.
   */
  writeDurably(bytes: Uint8Array, position: number): Promise<void>

  sync(): Promise<void>
  close(): Promise<void>
}

export interface Lock {
  release(): Promise<void>
}

/** Whether the disk failed because it has no space left. */
export function isFull(error: unknown): boolean {
  const code = (error as { code?: unknown } | undefined)?.code
  return code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG'
}
