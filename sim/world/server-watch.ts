import type { Claim, Event, LeaseStore } from 'leasehold/port'

export interface ServerWatchEvents {
  /** The events of one or more whole revisions, in order. */
  received(events: readonly Event[], revision: number): void
  /** Two stores on one log announce different events for one revision. */
  disagreed(revision: number, one: string, other: string): void
  /** Some events are no longer kept. The next events follow this revision. */
  resumed(revision: number, claimed: readonly Event[]): void
  /** Runs something after a moment of the world's time. */
  later(run: () => void): void
}

/**
 * Watches all keys of the servers' stores, without a network in between. It receives exactly what the
 * stores announce, so it knows every durable claim and when it ended. Several stores on one log
 * announce the same events: the first one counts, and the others must agree with it.
 */
export class ServerWatch {
  revision = 0
  readonly #events: ServerWatchEvents
  readonly #stores = new Set<LeaseStore>()
  /** The announced events of each revision, as JSON. */
  readonly #announced = new Map<number, string>()

  constructor(events: ServerWatchEvents) {
    this.#events = events
  }

  /** Watches the store of a new server process, from this revision on. */
  attach(store: LeaseStore, from = this.revision): void {
    this.#stores.add(store)
    store.watch({ prefix: '', from }, (notice) => {
      if (!this.#stores.has(store)) return
      if (notice.type === 'events') this.#receive(notice.events, notice.revision)
      else if (notice.type === 'compacted') this.#readAgain(store)
      else if (notice.type === 'interrupted') this.#attachLater(store)
    })
  }

  detach(store: LeaseStore | undefined): void {
    if (store) this.#stores.delete(store)
  }

  /** A store that cannot reach its log in time interrupts a watch that is being opened. */
  #attachLater(store: LeaseStore): void {
    this.#events.later(() => {
      if (this.#stores.has(store)) this.attach(store)
    })
  }

  #receive(events: readonly Event[], revision: number): void {
    const known = this.revision
    this.revision = Math.max(known, revision)
    for (const [each, own] of byRevision(events)) {
      const announced = JSON.stringify(own)
      const other = this.#announced.get(each)
      if (other === undefined) this.#announced.set(each, announced)
      else if (other !== announced) this.#events.disagreed(each, other, announced)
    }
    const fresh = events.filter((event) => event.revision > known)
    if (revision > known) this.#events.received(fresh, revision)
  }

  #readAgain(store: LeaseStore): void {
    readClaims(store).then(
      ({ revision, claims }) => {
        if (!this.#stores.has(store)) return
        this.attach(store, revision)
        if (revision <= this.revision) return
        const claimed = claims.map(
          (claim): Event => ({ ...claim, type: 'claimed', revision: claim.token, at: 0 }),
        )
        this.revision = revision
        this.#events.resumed(revision, claimed)
      },
      () => this.#attachLater(store),
    )
  }
}

function byRevision(events: readonly Event[]): Map<number, Event[]> {
  const groups = new Map<number, Event[]>()
  for (const event of events) {
    const group = groups.get(event.revision)
    if (group) group.push(event)
    else groups.set(event.revision, [event])
  }
  return groups
}

/** All claims at one revision. A read of many keys omits most waiters, so each key is read too. */
async function readClaims(
  store: LeaseStore,
): Promise<{ readonly revision: number; readonly claims: readonly Claim[] }> {
  for (;;) {
    const { revision, keys, more } = await store.read({ prefix: '' })
    if (more) throw new Error('the world has more keys than one read returns')
    const readings = await Promise.all(
      keys.map(({ key, count }) => store.read({ key, limit: count })),
    )
    if (readings.every((reading) => reading.revision === revision)) {
      return { revision, claims: readings.flatMap(({ claims }) => claims) }
    }
  }
}
