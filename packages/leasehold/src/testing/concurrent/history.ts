import {
  type End,
  type ErrorCode,
  isLeaseholdError,
  type Lease,
  type Notice,
  type Revision,
  type WatchTarget,
} from '../../port/index.ts'
import type { Call } from '../commands/calls.ts'

/** What a store was asked to do: a call, a watch, or a restart. */
export type Asked =
  | Exclude<Call, { method: 'pass' }>
  | { readonly method: 'watch'; readonly argument: WatchTarget }
  | { readonly method: 'restart'; readonly argument: Restart }

/** How a store was closed, or lost, and opened again. */
export interface Restart {
  /** When it was open again: every lease has its full ttl from this moment. */
  readonly openedAt: number
  /** The minimum and maximum by which the ends of lives are postponed. */
  readonly putOff: readonly [least: number, most: number]
  /** The leases, as the reopened store shows them. */
  readonly leases: readonly Lease[]
  /** Its revision when it was open again. */
  readonly revision: Revision
  /** It was not closed properly, and may have skipped revisions so that none is used twice. */
  readonly mayHaveSkipped: boolean
}

export type Outcome =
  | { readonly is: 'answered'; readonly answer: object }
  | { readonly is: 'refused'; readonly code: ErrorCode; readonly end: End | undefined }
  /** It was carried out, and its answer was not received. */
  | { readonly is: 'done' }
  /** It may have been carried out, or may still be, or never. */
  | { readonly is: 'unknown'; readonly why: string }

/**
 * One call and its outcome. `begun` and `ended` are positions in the order of everything that the
 * driver saw: a call that ended before another began was carried out before it.
 */
export interface Entry {
  readonly number: number
  readonly store: number
  readonly asked: Asked
  readonly begun: number
  /** The time on the store's clock when it was called. */
  readonly time: number
  ended: number
  /** For an unknown outcome: calls that began after this were carried out later, if this was at all. */
  latest: number
  /** The answer came at the very moment of the call, on the store's clock. */
  wasAtOnce: boolean
  outcome: Outcome | undefined
  /** Its connection broke in the meantime: it need not follow the order of its store's calls. */
  isFree: boolean
  /** For a watch: its connection broke, or its store was closed. */
  mayBeInterrupted: boolean
  /** Everything that was due when it was called has expired. */
  readonly mustBeOnTime: boolean
  /** For a watch: all notices. The first one is its answer. */
  readonly received: Notice[]
  /** For a watch: it gets no more notices, because it was closed or its store was lost. */
  closed: boolean
}

/** Everything that happened in one run, in the order in which the driver saw it. */
export class History {
  readonly entries: Entry[] = []
  /** What the stores must never do, such as calling an observer after `close`. */
  readonly faults: string[] = []
  /** From now on nothing is late. */
  isOnTime = false
  #sequence = 0
  #quiet = 0

  begin(store: number, asked: Asked, time: number): Entry {
    const entry: Entry = {
      ...{ number: this.entries.length, store, asked, time },
      ...{ begun: this.#sequence++, ended: Infinity, latest: Infinity },
      ...{ wasAtOnce: false, outcome: undefined },
      ...{ isFree: false, mayBeInterrupted: false, mustBeOnTime: this.isOnTime },
      ...{ received: [], closed: false },
    }
    this.entries.push(entry)
    return entry
  }

  end(entry: Entry, outcome: Outcome): void {
    if (entry.outcome !== undefined) return
    entry.outcome = outcome
    entry.ended = this.#sequence++
  }

  /** It failed at this time, on the store's clock. */
  fail(entry: Entry, error: unknown, time: number): void {
    if (!isLeaseholdError(error)) throw error
    entry.wasAtOnce = time === entry.time
    const { code, reason, by, why } = error
    if (error.outcome === 'unknown') this.end(entry, { is: 'unknown', why: error.message })
    else {
      const end = reason === undefined ? undefined : ({ reason, by, why } as End)
      this.end(entry, { is: 'refused', code, end })
    }
  }

  receive(entry: Entry, notice: Notice): void {
    if (entry.closed) {
      this.faults.push(`${show(entry)} got ${JSON.stringify(notice)} after it was closed`)
      return
    }
    entry.received.push(notice)
    if (notice.type !== 'interrupted') this.end(entry, { is: 'answered', answer: notice })
    else this.end(entry, { is: 'unknown', why: 'interrupted' })
  }

  /** No call is in flight: an unknown outcome was carried out by now, or never will be. */
  quiet(): void {
    for (const entry of this.entries.slice(this.#quiet)) {
      entry.latest = this.#sequence
    }
    this.#quiet = this.entries.length
  }

  /** The calls without an answer. A watch waits for its first notice. */
  get pending(): readonly Entry[] {
    return this.entries.filter((entry) => entry.outcome === undefined)
  }

  get openWatches(): readonly Entry[] {
    return this.entries.filter(
      ({ asked, closed, received }) => asked.method === 'watch' && !closed && !isOver(received),
    )
  }

  /** The connection of this store breaks: the calls in flight may be reordered. */
  break(store: number): void {
    for (const entry of this.pending) if (entry.store === store) entry.isFree = true
    this.interrupt(store)
  }

  /** The watches of this store may be interrupted. */
  interrupt(store: number): void {
    for (const entry of this.openWatches) {
      if (entry.store === store) entry.mayBeInterrupted = true
    }
  }

  /** The process of the store is gone: it sends no answers and no notices any more. */
  lose(why: string): void {
    for (const entry of this.pending) this.end(entry, { is: 'unknown', why })
    for (const entry of this.openWatches) entry.closed = true
  }
}

/** Whether this is a final notice. */
export function isOver(received: readonly Notice[]): boolean {
  return ['gone', 'compacted', 'interrupted'].includes(received.at(-1)?.type ?? '')
}

/** An entry as a line of text. */
export function show({ number, store, asked, time, outcome }: Entry): string {
  const argument = asked.method === 'restart' ? '' : JSON.stringify(asked.argument)
  const what = `#${number} ${asked.method}(${argument})`
  return `${what} through store ${store} at ${time}: ${showOutcome(outcome)}`
}

function showOutcome(outcome: Outcome | undefined): string {
  if (outcome === undefined) return 'no answer'
  if (outcome.is === 'answered') return JSON.stringify(outcome.answer)
  if (outcome.is === 'done') return 'done'
  if (outcome.is === 'refused') return `refused with ${outcome.code}`
  return `unknown (${outcome.why})`
}
