import type { LogPromises, Position } from '../../log/index.ts'
import { AppendedEntries } from '../appended-entries.ts'
import type { LogEngine } from '../engine-log.ts'
import type { Feed } from '../feeds/feed.ts'
import type { SnapshotParts } from '../snapshots.ts'
import * as zk from './client/index.ts'
import { followZookeeper } from './follow-zookeeper.ts'
import { positionAt, SEGMENT, segmentOf, segmentPath } from './segments.ts'

const NOTHING = new Uint8Array(0)
const NODES = ['tail', 'trimmed', 'parts', 'log']

/**
 * A log in ZooKeeper 3.6 or later. The nodes under its root:
 *
 * - `log/SEGMENT/NUMBER`: the entries, see `segments.ts`.
 * - `tail`: written before the end of the log or a snapshot is read. A majority must agree to the
 *   write, so the server that answers has everything that was acknowledged before. `sync` does not
 *   promise that.
 * - `trimmed`: the position through which entries were deleted.
 * - `parts/NAME`: the parts of snapshots.
 */
export class ZookeeperLog implements LogEngine {
  readonly promises: LogPromises
  readonly parts: SnapshotParts
  readonly #client: zk.ZookeeperClient
  readonly #root: string
  readonly #log: string
  readonly #own = new AppendedEntries()
  /** The last known segment. */
  #segment = 0

  constructor(client: zk.ZookeeperClient, root: string, promises: LogPromises) {
    this.#client = client
    this.#root = root
    this.#log = `${root}/log`
    this.promises = promises
    const folder = zk.folderAt(client, `${root}/parts`)
    const names = async () => (await Promise.all([this.#bringUpToDate(), folder.names()]))[1]
    this.parts = { ...folder, names }
  }

  /** Creates the nodes that are missing, and finds the last segment. */
  async open(): Promise<this> {
    await this.#client.ensurePath(this.#root)
    for (const name of NODES) await this.#client.ensure(`${this.#root}/${name}`)
    await this.#findSegment()
    return this
  }

  async append(entry: Uint8Array): Promise<Position> {
    for (;;) {
      const segment = this.#segment
      const path = `${segmentPath(this.#log, segment)}/`
      const request = zk.create(path, entry, this.#client.access, true)
      const made = await this.#client.unless(request, zk.CODE.noNode)
      const position = made && positionAt(this.#log, made)
      if (position) {
        this.#own.add(position, entry)
        return position
      }
      // The segment is full, or others have already filled and trimmed it.
      if (made) await this.#nextSegment(segment)
      await this.#findSegment()
    }
  }

  async follow(feed: Feed): Promise<void> {
    const state = () => this.#state()
    await followZookeeper({ client: this.#client, path: this.#log, own: this.#own, state }, feed)
  }

  async tail(): Promise<Position> {
    return (await this.#state()).tail
  }

  async trim(through: Position): Promise<void> {
    const { tail, trimmed, version } = await this.#state()
    const most = Math.min(through, tail)
    if (most <= trimmed) return
    const marker = zk.setData(`${this.#root}/trimmed`, Buffer.from(`${most}`), version)
    // If another process trims at the same time, the next trim deletes the rest.
    if ((await this.#client.unless(marker, zk.CODE.badVersion)) === undefined) return
    // Delete in order: if a process sees a segment, the next one was not deleted.
    for (const segment of await this.#segments()) {
      const path = segmentPath(this.#log, segment)
      const isOver = most >= (segment + 1) * SEGMENT && segment < this.#segment
      const isOld = (entry: string) => (positionAt(this.#log, entry) ?? Infinity) <= most
      if (isOver) await this.#client.removeWhole(path)
      else if (segment <= segmentOf(most)) await this.#client.removeChildren(path, isOld)
    }
  }

  close(): void {
    this.#client.close()
  }

  /** The state of the log, with everything that was acknowledged before the call. */
  async #state(): Promise<{ tail: Position; trimmed: Position; version: number }> {
    for (;;) {
      const segment = this.#segment
      const [, here, next, { data, stat }] = await Promise.all([
        this.#bringUpToDate(),
        this.#client.unless(zk.exists(segmentPath(this.#log, segment)), zk.CODE.noNode),
        this.#client.unless(zk.exists(segmentPath(this.#log, segment + 1)), zk.CODE.noNode),
        this.#client.call(zk.getData(`${this.#root}/trimmed`)),
      ])
      if (here && !next) {
        const tail = segment * SEGMENT + Math.min(here.created, SEGMENT)
        return { tail, trimmed: Number(data), version: stat.version }
      }
      await this.#findSegment()
    }
  }

  /** Later reads on the same connection see everything that was acknowledged before this. */
  #bringUpToDate(): Promise<unknown> {
    return this.#client.call(zk.setData(`${this.#root}/tail`, NOTHING))
  }

  async #segments(): Promise<number[]> {
    const names = await this.#client.call(zk.getChildren(this.#log))
    return names.map(Number).sort((one, other) => one - other)
  }

  async #findSegment(): Promise<void> {
    for (;;) {
      const last = (await this.#segments()).at(-1)
      this.#segment = last ?? 0
      if (last !== undefined) return
      // The parent has version 0 only once, so the first segment is created only once.
      const first = zk.create(segmentPath(this.#log, 0), NOTHING, this.#client.access)
      const once = zk.multi([zk.setData(this.#log, NOTHING, 0), first])
      await this.#client.unless(once, zk.CODE.badVersion)
    }
  }

  /** Creates a segment only while the previous one exists, so a deleted one is not created again. */
  async #nextSegment(full: number): Promise<void> {
    const next = zk.create(segmentPath(this.#log, full + 1), NOTHING, this.#client.access)
    const both = zk.multi([zk.check(segmentPath(this.#log, full)), next])
    await this.#client.unless(both, zk.CODE.nodeExists, zk.CODE.noNode)
  }
}
