import type { Clock, End, LeaseId, Timer } from '../../port/index.ts'
import type { Context } from './context.ts'
import { endLease } from './ending.ts'
import type { KnownLease } from './known.ts'

const AGED: End = { reason: 'expired', why: 'it reached the end of its maximum life' }
const AGAIN_MS = 1000

/**
 * The ends of lives. etcd knows of none: it lets a lease live as long as it is kept alive. So every
 * process that knows of an end carries it out when the time has come. Where all of them have died
 * before, the lease ends by itself, one ttl and grace after its last renewal.
 */
export class Lives {
  readonly #clock: Clock
  readonly #timers = new Map<LeaseId, Timer>()
  #closed = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The life of a lease ends at this time on this process's clock. */
  limit(context: Context, known: KnownLease, at: number): void {
    if (this.#closed) return
    known.endOfLife = at
    this.#timers.get(known.lease)?.cancel()
    const timer = this.#clock.timer(at, () => {
      this.#timers.delete(known.lease)
      this.end(context, known.lease).catch(() => {
        this.limit(context, known, this.#clock.now() + AGAIN_MS)
      })
    })
    this.#timers.set(known.lease, timer)
  }

  /** Ends a lease whose life is over. */
  async end(context: Context, lease: LeaseId): Promise<void> {
    for (;;) {
      const found = await context.known.look(lease)
      if (!('id' in found)) return
      const end = found.record.ending ?? found.record.life?.end ?? AGED
      if (await endLease(context, found, end, undefined)) return
    }
  }

  close(): void {
    this.#closed = true
    for (const timer of this.#timers.values()) timer.cancel()
    this.#timers.clear()
  }
}
