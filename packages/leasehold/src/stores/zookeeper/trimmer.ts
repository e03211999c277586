import type { LeaseId } from '../../port/index.ts'
import type { Journal } from './journal.ts'
import type { Paths } from './paths.ts'
import type { Part } from './plan.ts'
import { decode, type Entry, encode, NOTHING } from './records.ts'
import { dataOf } from './tree.ts'
import { addWatch, type NodeData, type Op, sizeOf as sizeOfOp } from './wire/index.ts'

/** So many entries are removed together, as long as they and what goes with them take no more. */
const BATCH = 128
const BATCH_BYTES = 400_000
/** So many ends are removed together, where there are too many. */
const ENDS_AT_ONCE = 1000
/** Each store looks after so many entries of its own whether anybody trims the journal. */
const LOOK_EVERY = 256

/**
 * Keeps the journal short. One of all stores does so, the one that has an ephemeral node for it; and
 * none does while the journal is shorter than it may be. An entry's request, its events and the
 * ends of leases that it brought about are forgotten together.
 */
export class Trimmer {
  readonly #journal: Journal
  #written = 0
  /** The transaction that made the node by which it was elected; 0 while it is not. */
  #elected = 0
  #isAsking = false
  #isTrimming = false
  /** The paths of all entries, the oldest first. */
  #entries: string[] = []

  constructor(journal: Journal) {
    this.#journal = journal
    journal.onWritten = () => {
      if (++this.#written % LOOK_EVERY === 0) this.look()
    }
    const { main, paths } = journal.tree
    main.listen(paths.journal, {
      heard: (what, path) => {
        if (what === 'created' && this.#elected) this.#add(path)
      },
      missed: () => this.#resign(),
    })
  }

  /** Begins to trim where it is needed and nobody does. */
  look(): void {
    if (this.#elected || this.#isAsking) return
    this.#isAsking = true
    this.#elect()
      .catch(() => this.#resign())
      .finally(() => {
        this.#isAsking = false
      })
  }

  get #most(): number {
    return this.#journal.limits.events
  }

  #add(path: string): void {
    this.#entries.push(path)
    if (this.#entries.length < this.#most + BATCH || this.#isTrimming) return
    this.#isTrimming = true
    this.#trim()
      .catch(() => this.#resign())
      .finally(() => {
        this.#isTrimming = false
      })
  }

  async #elect(): Promise<void> {
    const { tree } = this.#journal
    const { paths } = tree
    const { value } = await tree.look([{ at: 'data', path: paths.journal }])
    if ((value[0]?.data?.stat.children ?? 0) < this.#most + BATCH) return
    const op: Op = { do: 'create', path: paths.trimmer, data: NOTHING, kind: 'ephemeral' }
    this.#elected = (await this.#journal.transact(['lease'], [op])).zxid
    await tree.main.call(addWatch(paths.journal))
    await this.#load()
  }

  /** Puts those entries that there are in order, before those that have been heard of meanwhile. */
  async #load(): Promise<void> {
    const { tree } = this.#journal
    const { journal } = tree.paths
    const names = (await tree.look([{ at: 'children', path: journal }])).value[0]?.children ?? []
    const all = names.map((name) => `${journal}/${name}`)
    const { value } = await tree.look(all.map((path) => ({ at: 'data', path })))
    const heard = new Set(this.#entries)
    const old = all.flatMap((path, at) => {
      const zxid = value[at]?.data?.stat.czxid
      return zxid === undefined || heard.has(path) ? [] : [{ path, zxid }]
    })
    old.sort((one, other) => one.zxid - other.zxid)
    this.#entries = [...old.map(({ path }) => path), ...this.#entries]
  }

  async #trim(): Promise<void> {
    while (this.#elected && this.#entries.length >= this.#most + BATCH) {
      const old = await this.#oldest()
      const nodes = old.flatMap(({ path, node }) => (node ? [{ path, node }] : []))
      const ends = await this.#there(old.flatMap((each) => each.ends))
      // What one entry brought about need not fit: what is too much for it is removed before it.
      while (sizeOf(ends) > BATCH_BYTES)
        await this.#commit(ends.splice(0, ENDS_AT_ONCE).map(removal))
      const trimmed = Math.max(0, ...nodes.map(({ node }) => node.stat.czxid))
      const mark: Op = { do: 'set', path: this.#paths.journal, data: encode({ trimmed }) }
      const gone = [...nodes.map(({ path }) => path), ...ends].map(removal)
      if (nodes.length > 0) await this.#commit([mark, ...gone])
      const removed = new Set(old.map(({ path }) => path))
      this.#entries = this.#entries.filter((path) => !removed.has(path))
    }
  }

  /** The oldest entries, as many as can be removed together, and one at least. */
  async #oldest(): Promise<OldEntry[]> {
    const paths = this.#entries.slice(0, BATCH)
    const { value } = await this.#journal.tree.look(paths.map(dataOf))
    const old = paths.map((path, at): OldEntry => {
      const node = value[at]?.data
      return { path, node, ends: node ? endedBy(node.data).map((id) => this.#paths.endOf(id)) : [] }
    })
    let bytes = 0
    const most = old.findIndex(({ path, ends }) => {
      bytes += sizeOf([path, ...ends])
      return bytes > BATCH_BYTES
    })
    return most < 0 ? old : old.slice(0, Math.max(1, most))
  }

  /** Those of these nodes that are there: another may have removed some, and then stopped. */
  async #there(paths: readonly string[]): Promise<string[]> {
    if (paths.length === 0) return []
    const { value } = await this.#journal.tree.look(paths.map(dataOf))
    return paths.filter((_, at) => value[at]?.data)
  }

  async #commit(ops: readonly Op[]): Promise<void> {
    const parts = ops.map((): Part => 'entry')
    await this.#journal.transact(parts, ops)
  }

  /** Somebody else trims, or something failed: looks again later. */
  #resign(): void {
    this.#entries = []
    const elected = this.#elected
    this.#elected = 0
    if (elected) this.#leave(elected).catch(() => {})
  }

  /** Removes the node by which it was elected; not that of another who came after. */
  async #leave(elected: number): Promise<void> {
    const { tree } = this.#journal
    const path = this.#paths.trimmer
    const { value } = await tree.look([dataOf(path)])
    if (value[0]?.data?.stat.czxid !== elected) return
    await this.#journal.transact(['lease'], [{ do: 'delete', path }])
  }

  get #paths(): Paths {
    return this.#journal.tree.paths
  }
}

/** An entry that is to be removed, and the nodes of the ends that go with it. */
interface OldEntry {
  readonly path: string
  readonly node: NodeData | undefined
  readonly ends: readonly string[]
}

function removal(path: string): Op {
  return { do: 'delete', path }
}

/** What it takes in a transaction to remove these nodes. */
function sizeOf(paths: readonly string[]): number {
  return paths.reduce((sum, path) => sum + sizeOfOp(removal(path)), 0)
}

/** Most entries end no lease, which is seen without reading them. */
function endedBy(data: Buffer): readonly LeaseId[] {
  return data.includes('"ended"') ? (decode<Entry>(data).ended ?? []) : []
}
