/**
 * What the file store asks of a disk. Everything that it does to the outside world goes through
 * this, so that a simulated disk, slow or failing or losing its power, can stand in for the real
 * one, which is in `node-disk.ts`.
 *
 * A failure is a rejected promise whose error has a `code` as Node's do: `ENOSPC`, `EIO`, ….
 */
export interface Disk {
  /** Names the folder in messages. */
  readonly folder: string

  /**
   * Makes the caller the only owner of the folder, or is rejected with `storage-locked`. An owner
   * that has died without releasing does not count.
   */
  lock(): Promise<Lock>

  /** The names of the files in the folder. */
  list(): Promise<string[]>

  /** Opens a file that is there, to be read and to be written in place. */
  open(name: string): Promise<DiskFile>

  /** Makes an empty file, in place of one that has this name. */
  create(name: string): Promise<DiskFile>

  /** Gives a file another name, in one step. Durable after `sync`. */
  rename(from: string, to: string): Promise<void>

  /** Removes a file; one that is not there is no failure. */
  remove(name: string): Promise<void>

  /** Makes durable which files are in the folder, and their names. */
  sync(): Promise<void>
}

export interface DiskFile {
  size(): Promise<number>

  /** Reads `length` bytes at `position`, fewer only where the file ends. */
  read(position: number, length: number): Promise<Buffer>

  /** Writes; durable after `sync`. */
  write(bytes: Uint8Array, position: number): Promise<void>

  /**
   * Writes within the file's present size, and is fulfilled when the bytes are durable. Where the
   * power fails in the midst of it any of the 512-byte sectors concerned may be the new or the old
   * ones. Where it is rejected the same is true.
   */
  writeDurably(bytes: Uint8Array, position: number): Promise<void>

  sync(): Promise<void>
  close(): Promise<void>
}

export interface Lock {
  release(): Promise<void>
}

/** Whether a failure of the disk means that there is no space left. */
export function isFull(error: unknown): boolean {
  const code = (error as { code?: unknown } | undefined)?.code
  return code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG'
}
