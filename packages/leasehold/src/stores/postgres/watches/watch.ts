import {
  callObserver,
  type End,
  LeaseholdError,
  type Notice,
  type Observer,
  type Revision,
  type Watch,
} from '../../../port/index.ts'
import { type EventRow, type OwnRow, readEnd, readEvents, readOwn } from '../calls/answers.ts'

/** What the database reports to a lease's watch. */
export type LeaseReport =
  | readonly ['forgotten']
  | readonly ['gone', end: End | null]
  | readonly ['standing', claims: readonly OwnRow[]]
  | readonly ['news', notices: readonly NoticeRow[] | null]

type NoticeRow =
  | readonly ['holds', revision: Revision, token: number]
  | readonly ['removed', revision: Revision, key: string, token: number, end: End]
  | readonly ['capped', revision: Revision, remaining: number, end: End | null]

/** What the database reports to a prefix's watch. */
export type PrefixReport =
  | readonly ['watching', revision: Revision]
  | readonly ['compacted', oldest: Revision]
  | readonly ['events', revision: Revision, events: readonly EventRow[] | null]

/** One watch. After its last notice, or `close`, it gets no notice. */
abstract class Watcher implements Watch {
  /** Everything up to this revision was reported; null before the first notice. */
  since: Revision | null
  readonly #observer: Observer
  readonly #remove: () => void
  #open = true

  constructor(since: Revision | null, observer: Observer, remove: () => void) {
    this.since = since
    this.#observer = observer
    this.#remove = remove
  }

  get isOpen(): boolean {
    return this.#open
  }

  close(): void {
    if (!this.#open) return
    this.#open = false
    this.#remove()
  }

  notify(notice: Notice): void {
    if (!this.#open) return
    const { type } = notice
    if (type === 'gone' || type === 'compacted' || type === 'interrupted') this.close()
    callObserver(this.#observer, notice)
  }
}

export class LeaseWatcher extends Watcher {
  readonly lease: number

  constructor(lease: number, observer: Observer, remove: () => void) {
    super(null, observer, remove)
    this.lease = lease
  }

  /** Sends the database's report as of this revision. */
  receive(report: LeaseReport, revision: Revision): void {
    if (report[0] === 'forgotten' || (this.since ?? 0) > revision) {
      this.notify({ type: 'interrupted', error: forgotten() })
      return
    }
    this.since = revision
    if (report[0] === 'gone') this.notify({ type: 'gone', end: readEnd(report[1]) })
    else if (report[0] === 'standing') {
      this.notify({ type: 'standing', revision, claims: report[1].map(readOwn) })
    } else for (const row of report[1] ?? []) this.notify(readNotice(row))
  }
}

function forgotten(): LeaseholdError {
  return new LeaseholdError(
    'unknown-outcome',
    'the database has lost earlier changes, for example after a failover to a standby that was behind: open a new watch',
  )
}

function readNotice(row: NoticeRow): Notice {
  if (row[0] === 'holds') return { type: 'holds', revision: row[1], token: row[2] }
  if (row[0] === 'capped') return { type: 'capped', remaining: row[2], end: readEnd(row[3]) }
  const [type, revision, key, token, end] = row
  return { type, revision, key, token, end: readEnd(end)! }
}

export class PrefixWatcher extends Watcher {
  readonly prefix: string
  #started = false

  constructor(prefix: string, from: Revision | null, observer: Observer, remove: () => void) {
    super(from, observer, remove)
    this.prefix = prefix
  }

  /** Sends the database's report. Returns whether there may be more, as of `revision`. */
  receive(report: PrefixReport, revision: Revision): boolean {
    if (report[0] === 'compacted') {
      this.notify({ type: 'compacted', oldest: report[1] })
      return false
    }
    if (!this.#started) {
      this.#started = true
      this.notify({ type: 'watching', revision: this.since ?? report[1] })
    }
    this.since = report[1]
    const rows = report[0] === 'events' ? report[2] : null
    if (rows !== null) {
      const events = rows.flatMap(readEvents)
      this.notify({ type: 'events', revision: events.at(-1)!.revision, events })
    }
    return this.isOpen && this.since < revision
  }
}
