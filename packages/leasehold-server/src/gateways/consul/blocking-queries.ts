import type { Clock } from 'leasehold/port'
import { type Answer, type Call, ConsulError } from './answer.ts'
import type { Changes, Watched } from './changes.ts'
import { goDuration } from './durations.ts'

const WAIT_MS = 300_000
const WAIT_MAX_MS = 600_000

/** Blocking queries: they are answered when what they read has changed after `index`, or after `wait`. */
export class BlockingQueries {
  readonly #changes: Changes
  readonly #clock: Clock

  constructor(changes: Changes, clock: Clock) {
    this.#changes = changes
    this.#clock = clock
  }

  /**
   * Reads, and reads again after each change, until the index of the answer is a later one. `read`
   * gets the index of the latest change that was known before. That is the index of an answer with
   * several keys: one of a later change would hide others that the answer does not show.
   */
  async answer(
    { query, whenGone }: Call,
    watched: Watched | readonly Watched[],
    read: (latest: number) => Promise<Answer & { readonly index: number }>,
  ): Promise<Answer> {
    const after = indexOf(query)
    const changes = this.#changes
    const all = [watched].flat()
    if (after === 0) return read(changes.latest(all))
    const ending = new AbortController()
    const end = () => ending.abort()
    const timer = this.#clock.timer(this.#clock.now() + waitOf(query), end)
    const forget = whenGone(end)
    try {
      for (;;) {
        // Before the read, so that a change during the read is not missed.
        const changed = changes.next(all, ending.signal)
        const answer = await read(changes.latest(all))
        if (answer.index > after) return answer
        // An index that never was, such as one of an earlier store, must not stay.
        if (ending.signal.aborted) return { ...answer, index: Math.min(after, changes.seen) }
        await changed
      }
    } finally {
      end()
      timer.cancel()
      forget()
    }
  }
}

function indexOf(query: URLSearchParams): number {
  const given = query.get('index') ?? '0'
  if (/^\d+$/.test(given)) return Number(given)
  throw new ConsulError(400, 'Invalid index')
}

function waitOf(query: URLSearchParams): number {
  const given = query.get('wait')
  if (!given) return WAIT_MS
  const ms = goDuration(given)
  if (ms === undefined || ms < 0) throw new ConsulError(400, 'Invalid wait time')
  return Math.min(ms, WAIT_MAX_MS)
}
