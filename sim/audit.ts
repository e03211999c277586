import type { Claim, Event, LeaseStore } from 'leasehold/port'

export interface AuditEvents {
  /** The events of one or more whole revisions, in order. */
  heard(events: readonly Event[], revision: number): void
  /** Two stores on one log announce different things of one revision. */
  disagreed(revision: number, one: string, other: string): void
  /** Some events are not kept any more: what follows begins with this revision. */
  resumed(revision: number, claimed: readonly Event[]): void
}

/**
 * Watches all keys of the servers' own stores, without a network in between. It hears exactly what
 * the stores announce, so it knows every claim that is durable and when it ended. Several stores on
 * one log announce the same: whichever is first is heard, and the others must agree with it.
 */
export class Audit {
  revision = 0
  readonly #events: AuditEvents
  readonly #stores = new Set<LeaseStore>()
  /** What was announced of each revision. */
  readonly #announced = new Map<number, string>()

  constructor(events: AuditEvents) {
    this.#events = events
  }

  /** A server has a new process; its store goes on after this revision. */
  attach(store: LeaseStore, from = this.revision): void {
    this.#stores.add(store)
    store.watch({ prefix: '', from }, (notice) => {
      if (!this.#stores.has(store)) return
      if (notice.type === 'events') this.#hear(notice.events, notice.revision)
      else if (notice.type === 'compacted') this.#readAgain(store)
    })
  }

  detach(store: LeaseStore | undefined): void {
    if (store) this.#stores.delete(store)
  }

  #hear(events: readonly Event[], revision: number): void {
    const known = this.revision
    this.revision = Math.max(known, revision)
    for (const [each, own] of byRevision(events)) {
      const text = JSON.stringify(own)
      const other = this.#announced.get(each)
      if (other === undefined) this.#announced.set(each, text)
      else if (other !== text) this.#events.disagreed(each, other, text)
    }
    const fresh = events.filter((event) => event.revision > known)
    if (revision > known) this.#events.heard(fresh, revision)
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
      () => undefined,
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

/** All claims as of one revision. A reading of many keys leaves out most who wait: each is read too. */
async function readClaims(
  store: LeaseStore,
): Promise<{ readonly revision: number; readonly claims: readonly Claim[] }> {
  for (;;) {
    const { revision, keys, more } = await store.read({ prefix: '' })
    if (more) throw new Error('the world has more keys than the audit can read at once')
    const readings = await Promise.all(
      keys.map(({ key, count }) => store.read({ key, limit: count })),
    )
    if (readings.every((reading) => reading.revision === revision)) {
      return { revision, claims: readings.flatMap(({ claims }) => claims) }
    }
  }
}
