import { LeaseholdError } from '../../port/index.ts'
import type { Disk, DiskFile, Lock } from '../../stores/file/index.ts'
import type { SimNode } from './sim-node.ts'

const SECTOR = 512

export interface DiskFaults {
  /** The minimum and maximum time of a sync, in milliseconds. */
  readonly sync: readonly [number, number]
  /** The share of durable writes that fail with EIO. */
  readonly failure: number
  /** No file can grow: a write that would make it larger fails with ENOSPC. */
  readonly full?: boolean | undefined
}

/**
 * A disk that can lose power. What was written is readable at once but durable only after a sync.
 * When the power fails, anything that was not durable may be there or not: sector by sector for
 * contents, and from some moment on for names. If only the process dies, nothing is lost but the
 * write in progress, of which a part is readable.
 */
export class SimDisk implements Disk {
  readonly folder: string
  readonly #node: SimNode
  #faults: DiskFaults
  readonly #files = new Map<string, Contents>()
  /** How to undo the changes of names that are not durable yet, oldest first. */
  #undoNames: (() => void)[] = []
  #owned = false
  #full = false
  #notifyNextWrite: ((duration: number) => void) | undefined

  constructor(node: SimNode, faults: DiskFaults) {
    this.#node = node
    this.#faults = faults
    this.folder = `disk of ${node.name}`
  }

  /** From now on nothing fails, and a sync takes the minimum time. */
  calm(): void {
    const [least] = this.#faults.sync
    this.#faults = { sync: [least, 2 * least], failure: 0 }
    this.#notifyNextWrite = undefined
    this.#full = false
  }

  /** While it is full, no file can be created or grow: that fails with ENOSPC. */
  setFull(full: boolean): void {
    this.#full = full
  }

  /** Replaces these faults from now on. */
  change(faults: Partial<DiskFaults>): void {
    this.#faults = { ...this.#faults, ...faults }
  }

  /** Calls this once, when the next durable write begins, with how long that will take. */
  onNextWrite(notify: (duration: number) => void): void {
    this.#notifyNextWrite = notify
  }

  /** The process on this machine has crashed; with `power` lost, the machine, too. */
  crashed(power: boolean): void {
    const { random } = this.#node.world
    this.#owned = false
    if (power) {
      const kept = random.integer(0, this.#undoNames.length)
      for (const undo of this.#undoNames.slice(kept).reverse()) undo()
      this.#undoNames = []
    }
    for (const file of this.#files.values()) file.crashed(power)
  }

  lock(): Promise<Lock> {
    if (this.#owned) {
      const message = `${this.folder} is owned by another process`
      return Promise.reject(new LeaseholdError('storage-locked', message))
    }
    this.#owned = true
    const release = async (): Promise<void> => {
      this.#owned = false
    }
    return this.#after(0, () => ({ release }))
  }

  list(): Promise<string[]> {
    return this.#after(0, () => [...this.#files.keys()])
  }

  open(name: string): Promise<DiskFile> {
    return this.#after(0, () => {
      const contents = this.#files.get(name)
      if (!contents) throw fault('ENOENT', `${name} is not there`)
      return new SimFile(this.#node, contents, this.#durableWrite, this.#checkSpace)
    })
  }

  create(name: string): Promise<DiskFile> {
    return this.#after(0, () => {
      const contents = new Contents(this.#node, () => this.#full)
      if (this.#full) throw noSpace()
      this.#put(name, contents)
      return new SimFile(this.#node, contents, this.#durableWrite, this.#checkSpace)
    })
  }

  rename(from: string, to: string): Promise<void> {
    return this.#after(0, () => {
      const contents = this.#files.get(from)!
      this.#put(to, contents)
      this.#put(from, undefined)
    })
  }

  remove(name: string): Promise<void> {
    return this.#after(0, () => this.#put(name, undefined))
  }

  sync(): Promise<void> {
    const durable = this.#undoNames.length
    return this.#after(this.#syncTime(), () => {
      this.#undoNames = this.#undoNames.slice(durable)
    })
  }

  #put(name: string, contents: Contents | undefined): void {
    const old = this.#files.get(name)
    const set = (value: Contents | undefined): void => {
      if (value) this.#files.set(name, value)
      else this.#files.delete(name)
    }
    set(contents)
    this.#undoNames.push(() => set(old))
  }

  /** How long a durable write takes that begins now, and whether it fails. */
  readonly #durableWrite = (): DurableWrite => {
    const failed = this.#node.world.random.chance(this.#faults.failure)
    const duration = this.#syncTime()
    const notify = this.#notifyNextWrite
    this.#notifyNextWrite = undefined
    notify?.(duration)
    return { failed, duration }
  }

  readonly #checkSpace = (): void => {
    if (this.#faults.full) throw fault('ENOSPC', 'the disk is full')
  }

  #syncTime(): number {
    return this.#node.world.random.between(...this.#faults.sync)
  }

  #after<T>(delay: number, act: () => T): Promise<T> {
    return afterIn(this.#node, delay, act)
  }
}

/** The bytes of a file, and which of them are not durable. */
class Contents {
  readonly #node: SimNode
  bytes = new Uint8Array(0)
  /** The old content of the parts that are not durable yet. */
  #undo: { readonly position: number; readonly bytes: Uint8Array }[] = []
  #underWay: { readonly position: number; readonly bytes: Uint8Array } | undefined

  readonly #isFull: () => boolean

  constructor(node: SimNode, isFull: () => boolean) {
    this.#node = node
    this.#isFull = isFull
  }

  write(bytes: Uint8Array, position: number): void {
    const end = position + bytes.length
    if (end > this.bytes.length) {
      if (this.#isFull()) throw noSpace()
      const longer = new Uint8Array(end)
      longer.set(this.bytes)
      this.bytes = longer
    }
    this.#undo.push({ position, bytes: this.bytes.slice(position, end) })
    this.bytes.set(bytes, position)
  }

  synced(): void {
    this.#undo = []
  }

  begin(bytes: Uint8Array, position: number): void {
    this.#underWay = { position, bytes: bytes.slice() }
  }

  /** The write in progress has ended: completely or, if it failed, partly. */
  finish(failed: boolean): void {
    const write = this.#underWay
    if (!write) return
    this.#underWay = undefined
    if (failed) this.#some(write.bytes, write.position)
    else this.bytes.set(write.bytes, write.position)
  }

  crashed(power: boolean): void {
    if (power) {
      for (const { position, bytes } of this.#undo.reverse()) this.#some(bytes, position)
      this.#undo = []
    } else if (this.#underWay) {
      // The part that the machine has accepted is readable, and is not durable before a sync.
      const { position, bytes } = this.#underWay
      const end = position + bytes.length
      this.#undo.push({ position, bytes: this.bytes.slice(position, end) })
    }
    this.finish(true)
  }

  /** Writes some sectors of these bytes, and others not. */
  #some(bytes: Uint8Array, position: number): void {
    const { random } = this.#node.world
    const end = position + bytes.length
    for (let at = position; at < end; ) {
      const next = Math.min(end, (Math.floor(at / SECTOR) + 1) * SECTOR)
      if (random.chance(0.5)) this.bytes.set(bytes.subarray(at - position, next - position), at)
      at = next
    }
  }
}

interface DurableWrite {
  readonly failed: boolean
  readonly duration: number
}

class SimFile implements DiskFile {
  readonly #node: SimNode
  readonly #contents: Contents
  readonly #durableWrite: () => DurableWrite
  readonly #checkSpace: () => void

  constructor(
    node: SimNode,
    contents: Contents,
    durableWrite: () => DurableWrite,
    checkSpace: () => void,
  ) {
    this.#node = node
    this.#contents = contents
    this.#durableWrite = durableWrite
    this.#checkSpace = checkSpace
  }

  size(): Promise<number> {
    return afterIn(this.#node, 0, () => this.#contents.bytes.length)
  }

  read(position: number, length: number): Promise<Buffer> {
    return afterIn(this.#node, 0, () =>
      Buffer.from(this.#contents.bytes.slice(position, position + length)),
    )
  }

  write(bytes: Uint8Array, position: number): Promise<void> {
    return afterIn(this.#node, 0, () => {
      if (position + bytes.length > this.#contents.bytes.length) this.#checkSpace()
      this.#contents.write(bytes, position)
    })
  }

  writeDurably(bytes: Uint8Array, position: number): Promise<void> {
    const { failed, duration } = this.#durableWrite()
    this.#contents.begin(bytes, position)
    return afterIn(this.#node, duration, () => {
      this.#contents.finish(failed)
      if (failed) throw fault('EIO', 'the disk could not write')
    })
  }

  sync(): Promise<void> {
    return afterIn(this.#node, this.#durableWrite().duration, () => this.#contents.synced())
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

/** Settles in the calling process, and never if that has crashed in the meantime. */
function afterIn<T>(node: SimNode, delay: number, act: () => T): Promise<T> {
  return new Promise((resolve, reject) => {
    node.world.after(
      delay,
      node.guard(() => {
        try {
          resolve(act())
        } catch (error) {
          reject(error)
        }
      }),
    )
  })
}

function noSpace(): Error {
  return fault('ENOSPC', 'the disk is full')
}

function fault(code: string, message: string): Error {
  return Object.assign(new Error(`${code}: ${message}`), { code })
}
