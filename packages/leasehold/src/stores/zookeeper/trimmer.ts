import type { LeaseId } from '../../port/index.ts'
import type { Follower, Reader, Told } from './follower.ts'
import type { Journal } from './journal.ts'
import type { Part } from './plan.ts'
import { encode, NOTHING } from './records.ts'
import type { Op } from './wire/index.ts'

/** So many entries are removed together. */
const BATCH = 128
/** Each store looks after so many entries of its own whether anybody trims the journal. */
const LOOK_EVERY = 256

interface Old {
  readonly name: string
  readonly zxid: number
  readonly ended: readonly LeaseId[]
}

/**
 * Keeps the journal short. One of all stores does so, the one that has an ephemeral node for it; and
 * none does while the journal is shorter than it may be. An entry's request, its events and the
 * ends of leases that it brought about are forgotten together.
 */
export class Trimmer implements Reader {
  readonly #journal: Journal
  readonly #follower: Follower
  #written = 0
  #isElected = false
  #isTrimming = false
  #entries: Old[] = []

  constructor(journal: Journal, follower: Follower) {
    this.#journal = journal
    this.#follower = follower
    journal.onWritten = () => {
      if (++this.#written % LOOK_EVERY === 0) this.look()
    }
  }

  /** Begins to trim where it is needed and nobody does. */
  look(): void {
    if (!this.#isElected) void this.#elect().catch(() => this.#resign())
  }

  told({ name, zxid, ended }: Told): void {
    this.#entries.push({ name, zxid, ended })
    if (this.#entries.length < this.#most + BATCH || this.#isTrimming) return
    this.#isTrimming = true
    this.#trim()
      .catch(() => this.#resign())
      .finally(() => {
        this.#isTrimming = false
      })
  }

  broken(): void {
    this.#resign()
  }

  get #most(): number {
    return this.#journal.limits.events
  }

  async #elect(): Promise<void> {
    const { tree } = this.#journal
    const { paths } = tree
    const { value } = await tree.look([{ at: 'data', path: paths.journal }])
    if ((value[0]?.data?.stat.children ?? 0) < this.#most + BATCH || this.#isElected) return
    const op: Op = { do: 'create', path: paths.trimmer, data: NOTHING, kind: 'ephemeral' }
    await this.#journal.transact(['lease'], [op])
    this.#isElected = true
    await this.#follower.start()
    for (const change of this.#follower.changes) this.told(change)
    this.#follower.add(this)
  }

  async #trim(): Promise<void> {
    const { paths } = this.#journal.tree
    while (this.#entries.length >= this.#most + BATCH) {
      const old = this.#entries.slice(0, BATCH)
      const ops: Op[] = [
        { do: 'set', path: paths.journal, data: encode({ trimmed: old.at(-1)!.zxid }) },
        ...old.map(({ name }): Op => ({ do: 'delete', path: paths.entry(name) })),
        ...old.flatMap(({ ended }) =>
          ended.map((id): Op => ({ do: 'delete', path: paths.endOf(id) })),
        ),
      ]
      await this.#journal.transact(
        ops.map((): Part => 'entry'),
        ops,
      )
      this.#entries.splice(0, BATCH)
    }
  }

  /** Somebody else trims, or something failed: looks again later. */
  #resign(): void {
    this.#follower.remove(this)
    this.#entries = []
    if (!this.#isElected) return
    this.#isElected = false
    const { paths } = this.#journal.tree
    const op: Op = { do: 'delete', path: paths.trimmer }
    this.#journal.transact(['lease'], [op]).catch(() => {})
  }
}
