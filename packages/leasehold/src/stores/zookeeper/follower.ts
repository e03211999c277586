import type { Event, LeaseId } from '../../port/index.ts'
import { LeaseholdError } from '../../port/index.ts'
import type { Journal } from './journal.ts'
import { decode, type Entry } from './records.ts'
import { addWatch, CODE, getData, isFault, type NodeData } from './wire/index.ts'

/** So much of what was told is kept here at most, however long the journal is. */
const KEPT_BYTES = 32 * 1024 * 1024

/** One change of the store. */
export interface Told {
  readonly zxid: number
  readonly events: readonly Event[]
  readonly bytes: number
}

export interface Reader {
  told(change: Told): void
  /** Changes were missed; nothing is told any more. */
  broken(error: LeaseholdError): void
}

/** What the journal's own node says: up to where its entries were removed. */
export interface JournalRecord {
  readonly trimmed: number
}

/**
 * Reads the journal as it grows, once for all who watch in this store. The server says that there is
 * a new entry, in the order of transactions; the entry is fetched, and told. After a broken
 * connection all entries are read, and those that are new are told.
 */
export class Follower {
  readonly #journal: Journal
  readonly #died: (id: LeaseId) => void
  readonly #readers = new Set<Reader>()
  /** What was told, in order, from `completeAfter` on. */
  readonly changes: Told[] = []
  completeAfter = 0
  #bytes = 0
  #last = 0
  #started: Promise<void> | undefined
  #isListening = false
  /** How often it has begun: what was heard before it last began is of no use any more. */
  #begun = 0
  /** What is under way: entries are told in the order in which they were heard of. */
  #queue: Promise<void> = Promise.resolve()

  constructor(journal: Journal, died: (id: LeaseId) => void) {
    this.#journal = journal
    this.#died = died
  }

  /** Fulfilled when it follows; the same promise as long as it does. */
  start(): Promise<void> {
    this.#started ??= this.#start()
    return this.#started
  }

  add(reader: Reader): void {
    this.#readers.add(reader)
  }

  remove(reader: Reader): void {
    this.#readers.delete(reader)
  }

  async #start(): Promise<void> {
    const begun = ++this.#begun
    this.#listen()
    const loading = this.#queue.then(() => this.#load(true))
    this.#queue = loading.catch(() => {})
    try {
      await loading
    } catch (error) {
      if (begun === this.#begun) this.#stop()
      throw error
    }
  }

  #listen(): void {
    if (this.#isListening) return
    this.#isListening = true
    const { main, paths } = this.#journal.tree
    main.listen(paths.journal, {
      heard: (what, path) => {
        if (what === 'created' && this.#started) this.#hear(path)
      },
      missed: () => {
        if (this.#started) this.#inOrder(() => this.#load(false))
      },
    })
    main.listen(paths.alive, {
      heard: (what, path) => {
        if (what === 'deleted') this.#died(path.slice(paths.alive.length + 1))
      },
      missed: () => {},
    })
  }

  #hear(path: string): void {
    const fetching = this.#journal.tree.main.call(getData(path, false))
    fetching.catch(() => {})
    this.#inOrder(async () => {
      const { value } = await fetching
      this.#tell(value)
    })
  }

  #inOrder(work: () => Promise<void>): void {
    const begun = this.#begun
    const isWanted = () => this.#started !== undefined && begun === this.#begun
    this.#queue = this.#queue
      .then(() => (isWanted() ? work() : undefined))
      .catch((error) => {
        if (isWanted()) this.#break(error)
      })
  }

  /** Reads all there is, and tells what is new; all, where it begins afresh. */
  async #load(isFresh: boolean): Promise<void> {
    const { tree } = this.#journal
    const { journal, alive } = tree.paths
    await Promise.all([tree.main.call(addWatch(journal)), tree.main.call(addWatch(alive))])
    const { value, zxid } = await tree.look([
      { at: 'children', path: journal },
      { at: 'data', path: journal },
    ])
    const names = (value[0]?.children ?? []).map((name) => `${journal}/${name}`)
    const found = await tree.look(names.map((path) => ({ at: 'data', path })))
    const trimmed = await this.#trimmed()
    if (isFresh) this.completeAfter = trimmed
    else if (trimmed > this.#last) throw new Error('the journal was trimmed meanwhile')
    const nodes = found.value.flatMap(({ data }) => (data ? [data] : []))
    nodes.sort((one, other) => one.stat.czxid - other.stat.czxid)
    for (const node of nodes) this.#tell(node)
    this.#last = Math.max(this.#last, Math.min(zxid, found.zxid))
  }

  async #trimmed(): Promise<number> {
    const { tree } = this.#journal
    const { value } = await tree.look([{ at: 'data', path: tree.paths.journal }])
    const node = value[0]?.data
    return node && node.data.length > 0 ? decode<JournalRecord>(node.data).trimmed : 0
  }

  #tell({ data, stat }: NodeData): void {
    const { czxid, ctime } = stat
    if (czxid <= this.#last) return
    const { events, isToldByFirst } = decode<Entry>(data)
    if (isToldByFirst) return
    this.#last = czxid
    const told = events.map((event) => ({
      ...event,
      token: event.token === -1 ? czxid : event.token,
      revision: czxid,
      at: ctime,
    }))
    const change: Told = { zxid: czxid, events: told, bytes: data.length }
    this.changes.push(change)
    this.#bytes += change.bytes
    const most = 2 * this.#journal.limits.events
    while (this.#bytes > KEPT_BYTES || this.changes.length > most) this.#forgetOldest()
    for (const reader of [...this.#readers]) reader.told(change)
  }

  #forgetOldest(): void {
    const { zxid, bytes } = this.changes.shift()!
    this.completeAfter = zxid
    this.#bytes -= bytes
  }

  #break(error: unknown): void {
    if (isFault(error, CODE.noNode)) error = new Error('an entry was trimmed before it was read')
    const text = error instanceof Error ? error.message : String(error)
    const fault = new LeaseholdError(
      'unknown-outcome',
      `the events of ZooKeeper could not be followed (${text}): watch again`,
    )
    this.#stop()
    for (const reader of [...this.#readers]) reader.broken(fault)
    this.#readers.clear()
  }

  /** Forgets what it knew: whoever watches next makes it begin anew. */
  #stop(): void {
    this.#started = undefined
    this.changes.length = 0
    this.#bytes = 0
    this.#last = 0
  }
}
