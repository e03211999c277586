import {
  close,
  closeSync,
  constants,
  fchmodSync,
  fdatasync,
  fstatSync,
  fsyncSync,
  linkSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { LeaseholdError, type Random, type Token } from '../port/index.ts'
import { type FenceRecord, formatRecord, parseRecord } from './fence-record.ts'

const syncData = promisify(fdatasync)

/** Only the user of the fence can read and write its logs. */
const FILE_MODE = 0o600

const NAME = /^fence-(\d{8})\.log$/
const UNFINISHED = /^fence-(\d{8})\.log\..*\.tmp$/
/** A log is sealed when it has this many records more than twice the number of its resources. */
const SPARE_RECORDS = 10_000
/** Far more than needed: each further attempt means that a log was sealed at that moment. */
const ATTEMPTS = 100

/**
 * The highest token of each resource, in a folder that any number of processes of this machine use
 * at once, without locks: a process that is paused or killed at any point does not block others.
 *
 * **Why it is correct.** A log is append-only, and the system writes each record as a whole after
 * the one before (`O_APPEND`), so all processes see the same records in the same order. The highest
 * token of a resource is the highest in the log. To raise it, a process appends first and then reads
 * the log to its end. If two do so at once, the one that reads later sees both records, so a lower
 * token never overlooks a higher one before it.
 *
 * **Why it stays small.** When a log is long, any process appends the record `sealed`. Records after
 * it are ignored, so the content is final. A process that finds the seal writes the next log (the
 * highest token of each resource) under another name and links it into place. Only the first one
 * succeeds; all would have written the same. Then a log that says only `moved` replaces the old one.
 * No name is ever free again: otherwise a process that was paused before linking would start a
 * second history.
 *
 * Reading, appending and deciding are synchronous: within one process nothing comes between them.
 * They use only the system's memory. `durable` waits for the disk, which is slow.
 */
export class FenceLog {
  readonly #folder: string
  readonly #random: Random
  readonly #highest = new Map<string, Token>()
  #number: number
  #descriptor: number
  /** How far this log was read, in bytes; how many of those are whole lines; records with tokens. */
  #end = 0
  #position = 0
  #records = 0
  /** How far it is known to be on disk. */
  #synced = 0
  #syncing: Promise<void> | undefined
  #failure: LeaseholdError | undefined

  constructor(folder: string, random: Random) {
    this.#folder = folder
    this.#random = random
    const names = readdirSync(folder)
    this.#number = Math.max(1, ...names.map((name) => Number(NAME.exec(name)?.[1] ?? 0)))
    this.#descriptor = this.#open(this.#number, constants.O_CREAT)
    this.#syncFolder()
    for (const name of names) {
      const match = UNFINISHED.exec(name)
      if (match && Number(match[1]) <= this.#number) rmSync(join(folder, name), { force: true })
    }
    this.#catchUp()
  }

  /** The highest token that the resource has seen so far, in any process; 0 for none. */
  highest(resource: string): Token {
    if (this.#failure) throw this.#failure
    this.#catchUp()
    return this.#highest.get(resource) ?? 0
  }

  /** Raises the highest token to at least this one, and returns it. Not durable yet. */
  raise(resource: string, token: Token): Token {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const highest = this.highest(resource)
      if (highest >= token) return highest
      this.#append([resource, token])
      if (this.#records > 2 * this.#highest.size + SPARE_RECORDS) this.#append('sealed')
    }
    throw new LeaseholdError(
      'storage-failed',
      `${this.#path(this.#number)} is sealed again and again. Ask again.`,
    )
  }

  /** Fulfilled when everything read or raised so far is on disk. Many calls share one sync. */
  async durable(): Promise<void> {
    const number = this.#number
    const end = this.#end
    // What has moved to the next log became durable with it.
    while (number === this.#number && this.#synced < end) {
      this.#syncing ??= this.#sync().finally(() => {
        this.#syncing = undefined
      })
      await this.#syncing
    }
    if (this.#failure) throw this.#failure
  }

  async close(): Promise<void> {
    this.#failure ??= new LeaseholdError('closed', `the fence in ${this.#folder} was closed`)
    await this.#syncing?.catch(() => {})
    if (this.#descriptor >= 0) closeSync(this.#descriptor)
    this.#descriptor = -1
  }

  async #sync(): Promise<void> {
    const number = this.#number
    const end = this.#end
    try {
      await syncData(this.#descriptor)
    } catch (error) {
      // The system may have dropped what it could not write, and a second sync would not report it.
      this.#failure = new LeaseholdError(
        'storage-failed',
        `${this.#path(number)} could not be made durable (${(error as Error).message}): what was admitted last may be lost. Check the disk and open the fence again`,
        { cause: error },
      )
      throw this.#failure
    }
    if (number === this.#number) this.#synced = end
  }

  #append(record: FenceRecord): void {
    const bytes = Buffer.from(formatRecord(record))
    if (writeSync(this.#descriptor, bytes) === bytes.length) return
    throw new LeaseholdError(
      'storage-full',
      `${this.#path(this.#number)} has no space for a record. Free some space and ask again.`,
    )
  }

  /** Reads what any process has appended. If the log is sealed, continues with the next one. */
  #catchUp(): void {
    for (;;) {
      const size = fstatSync(this.#descriptor).size
      if (size < this.#position) throw this.#damaged('it has become shorter')
      if (size === this.#position) return
      const bytes = Buffer.alloc(size - this.#position)
      const count = readSync(this.#descriptor, bytes, 0, bytes.length, this.#position)
      const last = this.#apply(bytes.toString('utf8', 0, count).split('\n'))
      this.#end = this.#position + count
      // A line without its end may be incomplete just now: it is read again.
      this.#position += bytes.subarray(0, count).lastIndexOf(0x0a) + 1
      if (last !== undefined) this.#moveOn(last)
      else if (count === bytes.length) return
    }
  }

  /** Returns the record that ends the log, if there is one. Later records are ignored. */
  #apply(lines: readonly string[]): 'sealed' | 'moved' | undefined {
    for (const line of lines) {
      const record = line === '' ? 'cut' : parseRecord(line)
      if (record === 'sealed' || record === 'moved') return record
      if (record === 'cut') continue
      if (record === 'damaged') throw this.#damaged(`it has the line ${JSON.stringify(line)}`)
      const [resource, token] = record
      this.#records++
      if (token > (this.#highest.get(resource) ?? 0)) this.#highest.set(resource, token)
    }
    return undefined
  }

  #moveOn(last: 'sealed' | 'moved'): void {
    const next = this.#number + 1
    const descriptor = this.#openNext(next, last)
    const { size } = fstatSync(descriptor)
    // The process that wrote the next log may have died before making it, and its name, durable.
    fsyncSync(descriptor)
    this.#syncFolder()
    if (last === 'sealed') this.#replace(this.#number, ['moved'])
    this.#retire(this.#descriptor)
    this.#descriptor = descriptor
    this.#number = next
    this.#end = 0
    this.#position = 0
    this.#records = 0
    this.#synced = size
  }

  #openNext(next: number, last: 'sealed' | 'moved'): number {
    try {
      return this.#open(next)
    } catch (error) {
      if (!isMissing(error)) throw error
      if (last === 'moved') throw this.#damaged(`${this.#path(next)}, which follows it, is missing`)
    }
    const temporary = this.#write(next, this.#highest.entries())
    try {
      linkSync(temporary, this.#path(next))
    } catch (error) {
      // Another process was first, and may have removed this one already.
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST' && !isMissing(error)) throw error
    } finally {
      rmSync(temporary, { force: true })
    }
    return this.#open(next)
  }

  /** Only saves space: failing, or doing it twice, does no harm. */
  #replace(number: number, records: Iterable<FenceRecord>): void {
    const temporary = this.#write(number, records)
    try {
      renameSync(temporary, this.#path(number))
    } catch {
      rmSync(temporary, { force: true })
    }
  }

  /** Writes records to a new file, durably, and returns its path. */
  #write(number: number, records: Iterable<FenceRecord>): string {
    const path = `${this.#path(number)}.${this.#random.id()}.tmp`
    const bytes = Buffer.from([...records].map(formatRecord).join(''))
    const descriptor = openSync(path, 'wx', FILE_MODE)
    try {
      for (let done = 0; done < bytes.length; ) done += writeSync(descriptor, bytes, done)
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
    return path
  }

  /** A sync on it may be in progress. */
  #retire(descriptor: number): void {
    const ended = this.#syncing ?? Promise.resolve()
    void ended.catch(() => {}).then(() => close(descriptor, () => {}))
  }

  #open(number: number, more = 0): number {
    const flags = constants.O_RDWR | constants.O_APPEND | more
    const descriptor = openSync(this.#path(number), flags, FILE_MODE)
    const stat = fstatSync(descriptor)
    if (!stat.isFile()) {
      closeSync(descriptor)
      throw this.#damaged(`${this.#path(number)} is not a file`)
    }
    // Earlier versions let other users read it.
    if ((stat.mode & 0o077) !== 0 && process.platform !== 'win32') restrict(descriptor)
    return descriptor
  }

  #syncFolder(): void {
    // Windows cannot open a folder, and need not: its names are durable with the files.
    if (process.platform === 'win32') return
    const descriptor = openSync(this.#folder, 'r')
    try {
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
  }

  #path(number: number): string {
    return join(this.#folder, `fence-${String(number).padStart(8, '0')}.log`)
  }

  #damaged(what: string): LeaseholdError {
    return new LeaseholdError(
      'storage-damaged',
      `${this.#path(this.#number)} is damaged: ${what}. The highest tokens are unknown. Restore the folder from a copy that is not older than the last change of holder; or, while nothing holds a lock on the resources, move the folder away and let every holder take its lock again.`,
    )
  }
}

/** The log of another user keeps the permissions that this user set. */
function restrict(descriptor: number): void {
  try {
    fchmodSync(descriptor, FILE_MODE)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') throw error
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT'
}
