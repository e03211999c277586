import assert from 'node:assert/strict'
// Not the global ones, which a test runner may have faked.
import { clearTimeout, setTimeout } from 'node:timers'
import type { Event, LeaseStore, Notice, Watch, WatchTarget } from '../../port/index.ts'

type NoticeOf<T extends Notice['type']> = Extract<Notice, { type: T }>

/** Long enough for any engine to answer, short enough for somebody to wait for it. */
const PATIENCE_MS = 15_000

/** Listens to one watch: keeps what was heard in order, and waits for what is to come. */
export class Ear {
  readonly heard: Notice[] = []
  readonly #watch: Watch
  #taken = 0
  #wake: (() => void) | undefined
  readonly #patience: number

  constructor(store: LeaseStore, target: WatchTarget, patience = PATIENCE_MS) {
    this.#patience = patience
    let returned = false
    this.#watch = store.watch(target, (notice) => {
      assert.ok(returned, 'an observer was called before watch had returned')
      this.heard.push(notice)
      this.#wake?.()
    })
    returned = true
  }

  /** The next notice that was not taken yet, which must be of this type. */
  async next<T extends Notice['type']>(type: T, patience = 0): Promise<NoticeOf<T>> {
    const notice = await this.nextAny(patience)
    assert.equal(notice.type, type, `heard ${told(notice)} where '${type}' was to come next`)
    return notice as NoticeOf<T>
  }

  /** The next notice that was not taken yet, whatever it is. */
  async nextAny(patience = 0): Promise<Notice> {
    await this.#until(() => this.heard.length > this.#taken, 'a notice', patience)
    return this.heard[this.#taken++]!
  }

  /** All events heard so far, in order. */
  get events(): Event[] {
    return this.heard.flatMap((notice) => (notice.type === 'events' ? notice.events : []))
  }

  /** Waits until an event was heard that is the one meant; answers with all heard until then. */
  async eventsUntil(isIt: (event: Event) => boolean): Promise<Event[]> {
    await this.#until(() => this.events.some(isIt), 'an event')
    const events = this.events
    return events.slice(0, events.findIndex(isIt) + 1)
  }

  close(): void {
    this.#watch.close()
  }

  async #until(done: () => boolean, what: string, patience = 0): Promise<void> {
    const limit = this.#patience + patience
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        reject(
          new assert.AssertionError({
            message: `waited ${limit} ms for ${what}; heard ${this.heard.map(told).join(', ')}`,
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

/** An error says its message only when it is asked for. */
function told(notice: Notice): string {
  const why = notice.type === 'interrupted' ? `: ${notice.error.message}` : ''
  return `${JSON.stringify(notice)}${why}`
}
