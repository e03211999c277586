import assert from 'node:assert/strict'
// Not the global ones, which a test runner may have faked.
import { clearTimeout, setTimeout } from 'node:timers'
import type { Event, LeaseStore, Notice, Watch, WatchTarget } from '../../../port/index.ts'

type NoticeOf<T extends Notice['type']> = Extract<Notice, { type: T }>

/** Long enough for any engine to answer, short enough to wait for. */
const TIMEOUT_MS = 15_000

/** Records the notices of one watch in order, and waits for the next ones. */
export class WatchRecorder {
  readonly notices: Notice[] = []
  readonly #watch: Watch
  #read = 0
  #wake: (() => void) | undefined
  readonly #timeout: number

  constructor(store: LeaseStore, target: WatchTarget, timeout = TIMEOUT_MS) {
    this.#timeout = timeout
    let returned = false
    this.#watch = store.watch(target, (notice) => {
      assert.ok(returned, 'an observer was called before watch had returned')
      this.notices.push(notice)
      this.#wake?.()
    })
    returned = true
  }

  /** The next notice that was not read yet. It must have this type. */
  async next<T extends Notice['type']>(type: T, extra = 0): Promise<NoticeOf<T>> {
    const notice = await this.nextAny(extra)
    assert.equal(notice.type, type, `got ${described(notice)} instead of '${type}'`)
    return notice as NoticeOf<T>
  }

  /** The next notice that was not read yet, of any type. */
  async nextAny(extra = 0): Promise<Notice> {
    await this.#until(() => this.notices.length > this.#read, 'a notice', extra)
    return this.notices[this.#read++]!
  }

  /** All recorded events, in order. */
  get events(): Event[] {
    return this.notices.flatMap((notice) => (notice.type === 'events' ? notice.events : []))
  }

  /** Waits for a matching event. Returns all events up to it. */
  async eventsUntil(isIt: (event: Event) => boolean): Promise<Event[]> {
    await this.#until(() => this.events.some(isIt), 'an event')
    const events = this.events
    return events.slice(0, events.findIndex(isIt) + 1)
  }

  close(): void {
    this.#watch.close()
  }

  async #until(done: () => boolean, what: string, extra = 0): Promise<void> {
    const limit = this.#timeout + extra
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(
          new assert.AssertionError({
            message: `waited ${limit} ms for ${what}; got ${this.notices.map(described).join(', ')}`,
          }),
        )
      }, limit)
    })
    try {
      while (!done()) {
        const woken = new Promise<void>((resolve) => {
          this.#wake = resolve
        })
        await Promise.race([woken, late])
      }
    } finally {
      clearTimeout(timer)
    }
  }
}

/** JSON leaves out the message of an error. */
function described(notice: Notice): string {
  const why = notice.type === 'interrupted' ? `: ${notice.error.message}` : ''
  return `${JSON.stringify(notice)}${why}`
}
