import type { LogPromises, Position } from '../../log/index.ts'
import type { LogEngine } from '../engine-log.ts'
import type { Feed } from '../feeds/feed.ts'
import type { SnapshotParts } from '../snapshots.ts'
import {
  deleteRange,
  type EtcdClient,
  firstPutAfter,
  get,
  isPutAt,
  type KeyValue,
  keysOf,
  nonePutAfter,
  put,
} from './client/index.ts'
import { followEtcd } from './follow-etcd.ts'
import { type Names, namesUnder } from './names.ts'

/**
 * A log in etcd 3.4 or later: one key per entry, ordered by revision. It does not need etcd's
 * history, so an operator may compact it at any time.
 */
export class EtcdLog implements LogEngine {
  readonly promises: LogPromises
  readonly parts: SnapshotParts
  readonly #client: EtcdClient
  readonly #names: Names
  readonly #id: string
  #count = 0
  /** The highest position that this process has seen. */
  #seen: Position = 0

  /** `id` makes the keys of this process unique. */
  constructor(client: EtcdClient, prefix: string, id: string, promises: LogPromises) {
    this.#client = client
    this.#names = namesUnder(prefix)
    this.#id = id
    this.promises = promises
    this.parts = partsIn(client, this.#names)
  }

  async append(entry: Uint8Array): Promise<Position> {
    const key = this.#names.entry(this.#seen, `${this.#id}${(this.#count++).toString(36)}`)
    const { revision } = await this.#client.change([put(key, entry), put(this.#names.last, '')])
    this.#seen = Math.max(this.#seen, revision)
    return revision
  }

  async follow(feed: Feed): Promise<void> {
    await followEtcd(this.#client, this.#names, feed, (position) => {
      this.#seen = Math.max(this.#seen, position)
    })
  }

  async tail(): Promise<Position> {
    const { results } = await this.#client.read([get(this.#names.last)])
    return results[0]![0]?.revision ?? 0
  }

  async trim(through: Position): Promise<void> {
    const { last, trimmed } = this.#names
    const [start, end] = this.#names.entriesBefore(through)
    const reads = [get(last), get(trimmed), firstPutAfter(start, end, through)]
    const { results } = await this.#client.read(reads)
    const [[tail], [before], [late]] = results as [KeyValue[], KeyValue[], KeyValue[]]
    const most = Math.min(through, tail?.revision ?? 0)
    if (most <= Number(before?.value ?? 0)) return
    // Keys are ordered by base, and so by position, with exceptions: an entry may have been put much
    // later than its base. It and the entries after it stay until the next trim.
    const stop = late?.key ?? end
    // The conditions fail if another process trims at the same time, or if such an entry was put
    // since the read. Then the next trim deletes the entries.
    await this.#client.change(
      [put(trimmed, `${most}`), deleteRange(start, stop)],
      [isPutAt(trimmed, before?.revision ?? 0), nonePutAfter(start, stop, most)],
    )
  }

  close(): void {
    this.#client.close()
  }
}

function partsIn(client: EtcdClient, { part, parts }: Names): SnapshotParts {
  return {
    names: async () => {
      const { results } = await client.read([keysOf(...parts)])
      return results[0]!.map(({ key }) => key.slice(parts[0].length))
    },
    put: (name, bytes) => client.change([put(part(name), bytes)]),
    get: async (name) => (await client.readLong([get(part(name))])).results[0]![0]?.value,
    remove: (name) => client.change([deleteRange(part(name), `${part(name)}\0`)]),
  }
}
