import { fileStore } from '../../src/stores/file/index.ts'
import {
  type DiskFaults,
  type History,
  type Restart,
  type Rules,
  SimDisk,
} from '../../src/testing/index.ts'
import { WorldDriver } from './world-driver.ts'

export type FileFault =
  /** The maximum time until a write is durable. */
  | { readonly do: 'slow'; readonly ms: number }
  /** This share of durable writes fails with EIO, having written a part. */
  | { readonly do: 'fail'; readonly share: number }
  | { readonly do: 'fill' }
  | { readonly do: 'heal' }
  /** The store is closed and opened again. */
  | { readonly do: 'reopen' }
  /** The process dies after this time, with or without the machine, and another opens the folder. */
  | { readonly do: 'crash'; readonly after: number; readonly power: boolean }

/** Small rings, small files and frequent snapshots. */
const limits = { history: 256, events: 1024, requests: 256, ended: 256, idleKeys: 64 }
const FILES = { segmentBytes: 32 << 10, snapshotBytes: 1 << 10 }
const HEALTHY: DiskFaults = { sync: [0.1, 2], failure: 0, full: false }
/** A caller waits at most this long until the disk works again. */
const FAILS_FOR_MS = 500
/** A crash may extend a lease's life by the interval at which the time is written. */
const TIME_NOTED_EVERY_MS = 30_000

/** Drives a file store on a simulated disk. */
export class FileDriver extends WorldDriver<FileFault> {
  readonly rules: Rules
  /** An expiry that cannot be written is delayed. A caller cannot know until when. */
  readonly withoutExpiry: boolean
  readonly #disk: SimDisk

  private constructor(seed: number, rules: Partial<Rules>) {
    super(seed)
    this.rules = { limits, exactAfter: 0, inOrder: 'all', times: 'all', ...rules }
    this.withoutExpiry = this.rules.mayRefuseWith !== undefined
    this.#disk = new SimDisk(this.node, HEALTHY)
  }

  static async open(seed: number, rules: Partial<Rules> = {}): Promise<FileDriver> {
    const driver = new FileDriver(seed, rules)
    await driver.#open()
    return driver
  }

  async fault(fault: FileFault, history: History): Promise<void> {
    switch (fault.do) {
      case 'slow':
        this.#disk.change({ sync: [0.1, fault.ms] })
        break
      case 'fail':
        this.#disk.change({ failure: fault.share })
        break
      case 'fill':
        this.#disk.change({ full: true })
        break
      case 'heal':
        this.#disk.change(HEALTHY)
        break
      case 'reopen':
        await this.#reopen(history)
        break
      case 'crash':
        await this.#crash(fault.after, fault.power, history)
    }
  }

  async calm(): Promise<void> {
    this.#disk.change(HEALTHY)
  }

  /** A failing disk recovers in the end, because otherwise calls would never be answered. */
  override async until(done: () => boolean): Promise<void> {
    const end = this.now() + FAILS_FOR_MS
    await super.until(() => {
      if (this.now() > end) this.#disk.change({ failure: 0, full: false })
      return done()
    })
  }

  /** Returns the time at which it was open, and the leases and the revision at that moment. */
  async #open(): Promise<Pick<Restart, 'openedAt' | 'leases' | 'revision'>> {
    const { node } = this
    const options = { ...FILES, limits, clock: node.clock(), random: node.random, disk: this.#disk }
    let openedAt = 0
    const opening = fileStore('simulated', options).then(async (store) => {
      openedAt = this.now()
      this.use(store)
      return store.read({ leases: true })
    })
    const { leases, revision } = await this.#wait(opening)
    return { openedAt, leases, revision }
  }

  async #reopen(history: History): Promise<void> {
    const stoppedAt = this.now()
    history.interrupt(0)
    let closedAt = stoppedAt
    let notedAt = stoppedAt
    let failed = false
    const closing = this.stores[0]!.close()
      .catch(() => {
        failed = true
        notedAt -= TIME_NOTED_EVERY_MS
      })
      .finally(() => {
        closedAt = this.now()
      })
    await this.#wait(closing)
    history.lose('the store was closed')
    await this.#again(history, stoppedAt, [closedAt, notedAt], failed)
  }

  async #crash(after: number, power: boolean, history: History): Promise<void> {
    await this.pass(after)
    this.node.crash()
    this.#disk.crashed(power)
    history.lose('the process died')
    this.node.start(() => {})
    const stoppedAt = this.now()
    await this.#again(history, stoppedAt, [stoppedAt, stoppedAt - TIME_NOTED_EVERY_MS], true)
  }

  /** Opens the folder again. The last time in it is at least the second of these, at most the first. */
  async #again(
    history: History,
    stoppedAt: number,
    [closedAt, notedAt]: readonly [number, number],
    mayHaveSkipped: boolean,
  ): Promise<void> {
    this.#disk.change(HEALTHY)
    const opened = await this.#open()
    // Leases that were due while the store was closed expire in the next turns of the event loop.
    await this.pass(1)
    const putOff = [opened.openedAt - closedAt, opened.openedAt - notedAt] as const
    const argument = { ...opened, putOff, mayHaveSkipped }
    history.end(history.begin(0, { method: 'restart', argument }, stoppedAt), {
      is: 'answered',
      answer: {},
    })
  }

  async #wait<T>(promise: Promise<T>): Promise<T> {
    let settled = false
    const done = promise.finally(() => {
      settled = true
    })
    done.catch(() => {})
    await this.until(() => settled)
    return done
  }
}
