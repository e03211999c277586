import type { LeaseId } from '../../port/index.ts'
import type { Journal } from './journal.ts'
import type { Part } from './plan.ts'
import { decode, type Entry, encode, NOTHING } from './records.ts'
import { addWatch, type Op } from './wire/index.ts'

/** So many entries are removed together. */
const BATCH = 128
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
  #isElected = false
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
        if (what === 'created' && this.#isElected) this.#add(path)
      },
      missed: () => this.#resign(),
    })
  }

  /** Begins to trim where it is needed and nobody does. */
  look(): void {
    if (!this.#isElected) void this.#elect().catch(() => this.#resign())
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
    if ((value[0]?.data?.stat.children ?? 0) < this.#most + BATCH || this.#isElected) return
    const op: Op = { do: 'create', path: paths.trimmer, data: NOTHING, kind: 'ephemeral' }
    await this.#journal.transact(['lease'], [op])
    this.#isElected = true
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
    const { tree } = this.#journal
    const { paths } = tree
    while (this.#isElected && this.#entries.length >= this.#most + BATCH) {
      const old = this.#entries.slice(0, BATCH)
      const { value } = await tree.look(old.map((path) => ({ at: 'data', path })))
      const nodes = value.map(({ data }) => data!)
      const ended = nodes.flatMap(({ data }) => endedBy(data))
      const trimmed = Math.max(...nodes.map(({ stat }) => stat.czxid))
      const ops: Op[] = [
        { do: 'set', path: paths.journal, data: encode({ trimmed }) },
        ...old.map((path): Op => ({ do: 'delete', path })),
        ...ended.map((id): Op => ({ do: 'delete', path: paths.endOf(id) })),
      ]
      const parts = ops.map((): Part => 'entry')
      await this.#journal.transact(parts, ops)
      this.#entries.splice(0, BATCH)
    }
  }

  /** Somebody else trims, or something failed: looks again later. */
  #resign(): void {
    this.#entries = []
    if (!this.#isElected) return
    this.#isElected = false
    const op: Op = { do: 'delete', path: this.#journal.tree.paths.trimmer }
    this.#journal.transact(['lease'], [op]).catch(() => {})
  }
}

/** Most entries end no lease, which is seen without reading them. */
function endedBy(data: Buffer): readonly LeaseId[] {
  return data.includes('"ended"') ? (decode<Entry>(data).ended ?? []) : []
}
