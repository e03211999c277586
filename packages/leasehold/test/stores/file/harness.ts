import type { Clock, Key, LeaseStore, Limits, Timer } from '../../../src/port/index.ts'

/** A clock that moves only on request. */
export class StillClock implements Clock {
  #now = 1_800_000_000_000
  #timers: { time: number; run: () => void }[] = []

  now(): number {
    return this.#now
  }

  asleep(): number {
    return 0
  }

  /** How many timers are set. */
  get timers(): number {
    return this.#timers.length
  }

  timer(time: number, run: () => void): Timer {
    const timer = { time, run }
    if (time < Infinity) this.#timers.push(timer)
    return { cancel: () => this.#drop(timer) }
  }

  defer(run: () => void): void {
    setImmediate(run)
  }

  /** Advances the time, and runs due timers in order. */
  advance(milliseconds: number): void {
    const end = this.#now + milliseconds
    for (;;) {
      const due = this.#timers.filter(({ time }) => time <= end).sort((a, b) => a.time - b.time)[0]
      if (!due) break
      this.#drop(due)
      this.#now = Math.max(this.#now, due.time)
      due.run()
    }
    this.#now = end
  }

  #drop(timer: { time: number; run: () => void }): void {
    this.#timers = this.#timers.filter((each) => each !== timer)
  }
}

/** Small enough that a store is made in no time. */
export const SMALL: Partial<Limits> = {
  events: 64,
  history: 256,
  idleKeys: 64,
  requests: 64,
  ended: 256,
}

/** All that can be read of a store, except what a restart may change. */
export async function contents(store: LeaseStore, keys: readonly Key[] = []) {
  const { leases, revision } = await store.read({ leases: true })
  const owned = []
  for (const { id } of leases) {
    const reading = await store.read({ lease: id })
    const { renewedAt, until, ...lease } = reading.lease!
    const claims = reading.claims.map(({ until, ...claim }) => claim)
    claims.sort((a, b) => a.token - b.token || (a.key < b.key ? -1 : 1))
    owned.push({ lease, claims })
  }
  owned.sort((a, b) => (a.lease.id < b.lease.id ? -1 : 1))
  const prefix = await store.read({ prefix: '' })
  const lines = prefix.keys.map(({ key, claims, holders, count }) => ({
    key,
    tokens: claims.map(({ token }) => token),
    holders,
    count,
  }))
  const histories = []
  for (const key of keys) {
    const { tenures } = await store.read({ history: key })
    histories.push({ key, tenures })
  }
  return { revision, owned, lines, histories }
}

/** The same but for the revision, which a store raises after a crash. */
export async function contentsAfterCrash(store: LeaseStore, keys: readonly Key[] = []) {
  const { revision: _, ...rest } = await contents(store, keys)
  return rest
}

/** Waits until all pending work is done. */
export async function rest(turns = 20): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve))
}
