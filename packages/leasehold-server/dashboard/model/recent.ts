import type { Event } from 'leasehold/port'

export type Kind = 'claimed' | 'updated' | 'released' | 'expired' | 'revoked' | 'broken'

export const KINDS: readonly Kind[] = [
  'claimed',
  'updated',
  'released',
  'expired',
  'revoked',
  'broken',
]

/** So many events are kept for the feed. */
const KEPT = 4000
/** A holder whose leases ran out so often within this time flaps. */
export const FLAPS_MIN = 3
export const FLAPS_WITHIN_MS = 5 * 60_000
const FLAPPERS_MAX = 1000

export interface Filter {
  readonly kinds: ReadonlySet<Kind>
  readonly text: string
}

export interface Flapping {
  readonly holder: string
  readonly times: number
  readonly last: number
}

/** How often the leases of one holder ran out, and whether it has come back since. */
interface Flaps {
  readonly times: number[]
  isAway: boolean
  /** The token of the first claim since: what was claimed before ends with the life before. */
  returned: number
}

/** What happened lately, the latest first. */
export class Recent {
  #events: Event[] = []
  #start = 0
  version = 0
  readonly #flaps = new Map<string, Flaps>()

  hear(event: Event): void {
    if (this.#events.length < KEPT) this.#events.push(event)
    else {
      this.#events[this.#start] = event
      this.#start = (this.#start + 1) % KEPT
    }
    this.version++
    if (event.type === 'claimed') this.#claimed(event)
    else if (event.type === 'removed' && event.end?.reason === 'expired') this.#expired(event)
  }

  list({ kinds, text }: Filter): Event[] {
    const wanted = text.trim().toLowerCase()
    const found: Event[] = []
    for (let at = this.#events.length - 1; at >= 0; at--) {
      const event = this.#events[(this.#start + at) % this.#events.length]!
      if (kinds.has(kindOf(event)) && matches(event, wanted)) found.push(event)
    }
    // Of several prefixes the past is told one after the other.
    return found.sort((a, b) => b.revision - a.revision)
  }

  /** Holders whose leases have run out again and again, up to this time. */
  flapping(now: number): Flapping[] {
    const found: Flapping[] = []
    for (const [holder, { times }] of this.#flaps) {
      const late = times.filter((at) => at > now - FLAPS_WITHIN_MS)
      if (late.length >= FLAPS_MIN) found.push({ holder, times: late.length, last: late.at(-1)! })
    }
    return found.sort((a, b) => b.times - a.times)
  }

  #claimed({ holder, token }: Event): void {
    const known = this.#flaps.get(holder)
    if (known?.isAway !== true) return
    known.isAway = false
    known.returned = token
  }

  /** Whoever dies loses all that it had, one after the other: that is one time, until it returns. */
  #expired({ holder, token, at }: Event): void {
    const known = this.#flaps.get(holder)
    if (known !== undefined && (known.isAway || token < known.returned)) return
    const times = known?.times.filter((time) => time > at - FLAPS_WITHIN_MS) ?? []
    times.push(at)
    this.#flaps.delete(holder)
    this.#flaps.set(holder, { times, isAway: true, returned: 0 })
    if (this.#flaps.size <= FLAPPERS_MAX) return
    for (const oldest of this.#flaps.keys()) {
      this.#flaps.delete(oldest)
      return
    }
  }
}

export function kindOf({ type, end }: Event): Kind {
  return type === 'removed' ? (end?.reason ?? 'released') : type
}

function matches({ key, holder }: Event, text: string): boolean {
  return text === '' || key.toLowerCase().includes(text) || holder.toLowerCase().includes(text)
}
