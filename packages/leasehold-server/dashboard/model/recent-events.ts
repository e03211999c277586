import type { Event } from 'leasehold/port'

export type Kind = 'claimed' | 'held' | 'updated' | 'released' | 'expired' | 'revoked' | 'broken'

export const KINDS: readonly Kind[] = [
  'claimed',
  'held',
  'updated',
  'released',
  'expired',
  'revoked',
  'broken',
]

/** The number of events that the feed keeps. */
const KEPT = 4000
/** A holder flaps if its leases expire this often within this time. */
export const FLAPS_MIN = 3
export const FLAPS_WITHIN_MS = 5 * 60_000
const FLAPPERS_MAX = 1000

export interface Filter {
  /** Leaves out events of these holders, if given. */
  readonly without?: ((holder: string) => boolean) | undefined
  readonly kinds: ReadonlySet<Kind>
  readonly search: string
}

export interface Flapping {
  readonly holder: string
  readonly times: number
  readonly last: number
}

/** When the leases of one holder expired, and whether it has returned since. */
interface Flaps {
  readonly times: number[]
  isAway: boolean
  /** The token of the first claim after its return; older claims belong to its previous life. */
  returned: number
}

/** The latest events in a ring buffer, and the holders that flap. */
export class RecentEvents {
  #events: Event[] = []
  #start = 0
  version = 0
  readonly #flaps = new Map<string, Flaps>()

  /** A claim that holds at once is one event: `held`. So `claimed` means that it waits. */
  add(event: Event): void {
    const last = (this.#start + this.#events.length - 1) % KEPT
    if (isOutcomeOf(this.#events[last], event)) this.#events[last] = event
    else if (this.#events.length < KEPT) this.#events.push(event)
    else {
      this.#events[this.#start] = event
      this.#start = (this.#start + 1) % KEPT
    }
    this.version++
    if (event.type === 'claimed') this.#claimed(event)
    else if (event.type === 'removed' && event.end?.reason === 'expired') this.#expired(event)
  }

  list({ kinds, search, without }: Filter): Event[] {
    const wanted = search.trim().toLowerCase()
    const found: Event[] = []
    for (let at = this.#events.length - 1; at >= 0; at--) {
      const event = this.#events[(this.#start + at) % this.#events.length]!
      if (without?.(event.holder)) continue
      if (kinds.has(kindOf(event)) && matches(event, wanted)) found.push(event)
    }
    // Past events of several prefixes arrive one prefix after the other.
    return found.sort((a, b) => b.revision - a.revision)
  }

  /** Holders whose leases expired repeatedly before this time. */
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

  /** A dead holder loses all its claims one by one; they count once until it returns. */
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

/** Whether a claim was made and holds, in one revision. */
function isOutcomeOf(made: Event | undefined, { type, revision, key, token }: Event): boolean {
  if (made?.type !== 'claimed' || type !== 'held') return false
  return made.revision === revision && made.key === key && made.token === token
}

export function kindOf({ type, end }: Event): Kind {
  return type === 'removed' ? (end?.reason ?? 'released') : type
}

function matches({ key, holder }: Event, part: string): boolean {
  return part === '' || key.toLowerCase().includes(part) || holder.toLowerCase().includes(part)
}
