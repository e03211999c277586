import type { Event, Observer, Revision } from '../../../port/index.ts'
import { type EventPage, eventsOf } from '../calls/answers.ts'
import { RS, US } from '../calls/fields.ts'
import { faultOf } from '../faults.ts'
import { OpenWatch } from './open-watch.ts'

/**
 * Watches a prefix. A message contains the events of one run, and the revision of the events before
 * them: if that is not the last one received here, something was missed, and is read.
 */
export class PrefixWatch extends OpenWatch {
  readonly #prefix: string
  readonly #ask: (after: Revision) => Promise<EventPage>
  /** The last revision up to which everything was reported. */
  #seen: Revision = 0
  /** The last revision that a message mentioned. */
  #heard = 0
  #started = false
  #catchingUp: Promise<void> | undefined

  constructor(
    prefix: string,
    observer: Observer,
    ask: (after: Revision) => Promise<EventPage>,
    closed: () => void,
  ) {
    super(observer, closed)
    this.#prefix = prefix
    this.#ask = ask
  }

  get isStarted(): boolean {
    return this.#started
  }

  /** Continues after this revision, now that all new messages will be received. */
  start(from: Revision): Promise<void> {
    this.#seen = from
    return this.catchUp()
  }

  receive(text: string): void {
    const [before, last, ...events] = text.split(RS)
    this.#heard = Math.max(this.#heard, Number(last))
    if (this.#catchingUp !== undefined || !this.#started) return
    if (Number(before) > this.#seen) void this.catchUp()
    else this.#tellAll(events, Number(last))
  }

  /** Reads everything after the last reported revision, until no newer one was mentioned. */
  catchUp(): Promise<void> {
    this.#catchingUp ??= this.#catchUp().finally(() => {
      this.#catchingUp = undefined
    })
    return this.#catchingUp
  }

  async #catchUp(): Promise<void> {
    try {
      for (let more = true; more && this.isOpen; ) {
        const found = await this.#ask(this.#seen)
        if (found.oldest !== undefined) {
          this.notify({ type: 'compacted', oldest: found.oldest })
          return
        }
        if (!this.#started) {
          this.#started = true
          this.notify({ type: 'watching', revision: this.#seen })
        }
        this.#tellAll(found.events, found.revision)
        more = found.more || this.#heard > found.revision
      }
    } catch (error) {
      this.interrupt(faultOf(error))
    }
  }

  #tellAll(texts: readonly string[], upTo: Revision): void {
    const seen = this.#seen
    const events: Event[] = []
    for (const text of texts) {
      const end = text.indexOf(US)
      // The key is the third field. A watch of few keys should not parse the events of all others.
      const key = text.indexOf(US, end + 1) + 1
      if (Number(text.slice(0, end)) > seen && text.startsWith(this.#prefix, key)) {
        events.push(...eventsOf(text))
      }
    }
    this.#seen = Math.max(seen, upTo)
    if (events.length === 0) return
    this.notify({ type: 'events', revision: events[events.length - 1]!.revision, events })
  }
}
