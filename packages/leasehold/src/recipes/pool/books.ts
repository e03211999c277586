import type { Client } from '../../client/index.ts'
import { isLeaseholdError, type Key, type LeaseId, type Token } from '../../port/index.ts'
import { added, observed } from './hold-times.ts'
import { bookFrom } from './standing.ts'
import {
  type Account,
  addTo,
  type Book,
  charge,
  EMPTY_BOOK,
  type HoldTimes,
  type OpenPermit,
} from './usage.ts'

/** A book is kept for so many half-lives after it was last written: then it counts for nothing. */
const HALF_LIVES_KEPT = 10
/** With more books than this a writer takes over an old one, so that their number stays bounded. */
const BOOKS_MAX = 64
const KINDS_MAX = 64
const OPEN_MAX = 256

interface Written {
  readonly lease: LeaseId
  readonly token: Token
}

/**
 * Writes the book of one process: what its permits used, which are open, and how long each kind of
 * work was held. It lies in the store under a lease of its own that nobody keeps: it outlives the
 * process and vanishes when what it says has decayed to nothing.
 *
 * **Promised.** What was returned is entered before the resource is free, so that whoever decides
 * next counts it. Entries wait for each other and travel together.
 *
 * **Not promised.** The books serve fairness only, never safety. Where the store does not answer,
 * entries stay here until the next one. A process that dies leaves its permits charged as booked.
 */
export class Books {
  readonly #client: Client
  readonly #key: Key
  readonly #open = new Map<Token, OpenPermit>()
  /** What stands in the store, and what is to be added to it. */
  #book: Book = EMPTY_BOOK
  #more: Book = EMPTY_BOOK
  #written: Written | undefined = undefined
  #writing: Promise<void> | undefined = undefined
  #waiting: Promise<void> | undefined = undefined
  #halfLife = 1

  constructor(client: Client, key: Key) {
    this.#client = client
    this.#key = key
  }

  opened(permit: OpenPermit, halfLife: number): void {
    this.#halfLife = halfLife
    if (this.#open.size >= OPEN_MAX) return
    this.#open.set(permit.token, permit)
    void this.#write()
  }

  /** Booked for longer than at first. */
  extended(token: Token, booked: number): void {
    const permit = this.#open.get(token)
    if (permit === undefined) return
    this.#open.set(token, { ...permit, booked })
    void this.#write()
  }

  /**
   * Fulfilled when it is written, or could not be: never rejected. With a kind, how long it was held
   * is remembered for it.
   */
  closed(
    permit: OpenPermit,
    kind: string | undefined,
    held: number,
    halfLife: number,
  ): Promise<void> {
    this.#halfLife = halfLife
    this.#open.delete(permit.token)
    const { accounts, kinds } = this.#more
    const used: Account = { used: charge(permit.cost, held, halfLife), at: permit.since + held }
    this.#more = {
      open: [],
      accounts: { ...accounts, [permit.tenant]: addTo(accounts[permit.tenant], used, halfLife) },
      kinds: kind === undefined ? kinds : { ...kinds, [kind]: observed(kinds[kind], held) },
    }
    return this.#write()
  }

  /** One write at a time; all that is entered during one goes into the next. */
  #write(): Promise<void> {
    if (this.#writing === undefined) {
      this.#writing = this.#writeNow().finally(() => {
        this.#writing = undefined
      })
      return this.#writing
    }
    this.#waiting ??= this.#writing.then(() => {
      this.#waiting = undefined
      return this.#write()
    })
    return this.#waiting
  }

  async #writeNow(): Promise<void> {
    const more = this.#more
    this.#more = EMPTY_BOOK
    try {
      const book = this.#sum(this.#book, more)
      if (await this.#update(book)) this.#book = book
      else await this.#begin(this.#sum(EMPTY_BOOK, more))
    } catch (error) {
      // It is entered with what comes next.
      this.#more = this.#sum(more, this.#more)
      if (isLeaseholdError(error, 'closed')) return
      const detail = `the books could not be written: ${error}`
      this.#client.tell({ recipe: 'pool', event: 'books', key: this.#key, detail, level: 'warn' })
    }
  }

  /** False where there is no book to update: there was none, or another process has taken it over. */
  async #update(book: Book): Promise<boolean> {
    if (this.#written === undefined) return false
    const { store } = this.#client
    const { lease, token } = this.#written
    try {
      await store.update({ lease, key: this.#key, token, value: this.#text(book) })
      await store.renew([lease])
      return true
    } catch (error) {
      if (!isLeaseholdError(error) || error.outcome === 'unknown') throw error
      if (error.code === 'closed') throw error
      this.#written = undefined
      return false
    }
  }

  async #begin(book: Book): Promise<void> {
    const { store } = this.#client
    const { min, max } = store.guarantees.ttl
    const granted = await store.grant({
      holder: this.#client.holder,
      ttl: Math.ceil(Math.min(Math.max(this.#halfLife * HALF_LIVES_KEPT, min), max)),
      claims: [{ key: this.#key, mode: 'shared', value: this.#text(book) }],
    })
    if (granted.outcome === 'busy') return
    this.#written = granted
    this.#book = book
    await this.#takeOver(granted.token)
  }

  #text(book: Book): string {
    return JSON.stringify({ ...book, open: [...this.#open.values()] })
  }

  /** Revoking is done once, whoever tries: so what stood in a book is taken over once. */
  async #takeOver(own: Token): Promise<void> {
    const { store } = this.#client
    const { claims, count } = await store.read({ key: this.#key, limit: 2 })
    const old = claims.find(({ token }) => token !== own)
    if (count <= BOOKS_MAX || old === undefined) return
    const { claims: revoked } = await store.revoke({
      target: { key: this.#key, token: old.token },
      by: this.#client.holder,
      why: 'the books of the pool are put together',
    })
    // Permits that are open there are entered anew by their own process, if it lives.
    if (revoked === 0) return
    this.#more = this.#sum(this.#more, bookFrom(old.value))
    void this.#write()
  }

  #sum(a: Book, b: Book): Book {
    const accounts: Record<string, Account> = { ...a.accounts }
    for (const [tenant, account] of Object.entries(b.accounts)) {
      accounts[tenant] = addTo(accounts[tenant], account, this.#halfLife)
    }
    const kinds: Record<string, HoldTimes> = { ...a.kinds }
    for (const [kind, times] of Object.entries(b.kinds)) {
      const sum = added(kinds[kind], times)
      delete kinds[kind]
      kinds[kind] = sum
    }
    // Those that were seen longest ago stand first.
    const kept = Object.entries(kinds).slice(-KINDS_MAX)
    return { accounts, kinds: Object.fromEntries(kept), open: [] }
  }
}
