import { closed } from './faults.ts'
import { Session, type SessionOptions } from './wire/index.ts'

/** So many sessions at most are open for leases of different lengths. */
const SESSIONS_MOST = 16

/**
 * The sessions that leases live by. A session's timeout is as long as a lease may go without a
 * renewal, so that leases of one length share one, and most programs need one in all.
 *
 * A little is added, for a server may answer us and die before it has told the leader of it: what
 * the leader then last heard of us is older, by one ping and by the time between two reports.
 */
export class Sessions {
  readonly #options: SessionOptions
  /** The shortest timeout that the ensemble grants; by default two of its ticks. */
  readonly #shortest: number
  readonly #byTimeout = new Map<number, Session>()
  readonly #replaced: (session: Session) => void
  #isClosed = false

  constructor(options: SessionOptions, shortest: number, replaced: (session: Session) => void) {
    this.#options = options
    this.#shortest = shortest
    this.#replaced = replaced
  }

  /** The session for leases that may go so long without a renewal; connected. */
  async for(span: number): Promise<Session> {
    // Nobody would close it any more, and what lives by it would never end.
    if (this.#isClosed) throw closed()
    const tick = this.#shortest / 2
    const wanted = Math.max(this.#shortest, Math.ceil(this.#needed(span) / tick) * tick)
    const session = this.#byTimeout.get(wanted) ?? this.#open(wanted)
    if (session.timeout === 0) await session.touch()
    return session
  }

  /** How much longer than the session's timeout the lease must be left alone. */
  linger(span: number, session: Session): number {
    return span === Infinity ? 0 : Math.max(0, this.#needed(span) - session.timeout)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all([...this.#byTimeout.values()].map((session) => session.close('leave')))
  }

  #needed(span: number): number {
    return span + this.#options.pingEvery + this.#shortest / 4
  }

  #open(wanted: number): Session {
    if (this.#byTimeout.size >= SESSIONS_MOST) return this.#nearest(wanted)
    const session = new Session(this.#options, wanted)
    session.onReplaced = () => this.#replaced(session)
    this.#byTimeout.set(wanted, session)
    return session
  }

  /** The longest that is not longer, since a lease can linger after it; or the shortest there is. */
  #nearest(wanted: number): Session {
    const timeouts = [...this.#byTimeout.keys()].sort((one, other) => one - other)
    const timeout = timeouts.findLast((each) => each <= wanted) ?? timeouts[0]!
    return this.#byTimeout.get(timeout)!
  }
}
