import { holders, type LeaseId, type Mode, type Standing } from '../../port/index.ts'

/**
 * A claim's place in a key's line, as its node's name tells it: `c`, the mode, the limit, the lease,
 * the call that claimed, and the number that the server put behind it.
 */
export interface Place extends Standing {
  readonly name: string
  readonly mode: Mode
  readonly limit?: number | undefined
  /** Its lease never expires, so that nobody needs to look whether its keeper lives. */
  readonly isPermanent: boolean
  readonly lease: LeaseId
  /** The call that made it; the claims of one call have it in common. */
  readonly claim: string
  readonly order: number
}

export interface PlaceSpec {
  readonly mode?: Mode | undefined
  readonly limit?: number | undefined
  readonly isPermanent: boolean
  readonly lease: LeaseId
  readonly claim: string
}

/** The name of a new claim's node; the server puts a number behind it, and so an order. */
export function placeName({ mode, limit, isPermanent, lease, claim }: PlaceSpec): string {
  const kind = mode === 'shared' ? `s${limit ?? ''}` : 'x'
  return `c${kind}${isPermanent ? '~' : ''}.${lease}.${claim}.`
}

const NAME = /^c([xs])(\d*)(~?)\.([\w-]+)\.([\w-]+)\.(-?\d+)$/

export function parsePlace(name: string): Place | undefined {
  const match = NAME.exec(name)
  if (!match) return undefined
  const [, mode, limit, permanent, lease, claim, order] = match
  return {
    name,
    mode: mode === 's' ? 'shared' : 'exclusive',
    limit: limit ? Number(limit) : undefined,
    isPermanent: permanent !== '',
    lease: lease!,
    claim: claim!,
    order: Number(order),
  }
}

/** The claims among the children of a key's node, in order. */
export function lineOf(children: readonly string[]): Place[] {
  const line: Place[] = []
  for (const name of children) {
    const place = parsePlace(name)
    if (place) line.push(place)
  }
  // The server's numbers go round after two thousand million: what counts is their distance.
  return line.sort((one, other) => (one.order - other.order) | 0)
}

/**
 * Whose leaving a waiting claim must hear of: before it can come to hold, at least one of these
 * goes. They are few, and near, so that one who leaves wakes few.
 *
 * Behind an exclusive claim, it is the nearest of these, which must go. Among shared claims alone,
 * one that waits has too many before it, so that of the nearest `limit` before it one must go, or
 * it itself; and while one before us waits, we do.
 */
export function blockersOf(line: readonly Place[], index: number): Place[] {
  const exclusive = line.findLastIndex((place, at) => at < index && place.mode === 'exclusive')
  if (line[index]!.mode === 'exclusive') return index > 0 ? [line[index - 1]!] : []
  if (exclusive >= 0) return [line[exclusive]!]
  let at = index
  while (at >= 0 && at < (line[at]!.limit ?? Infinity)) at--
  if (at < 0) return []
  const nearest = line.slice(Math.max(0, at - line[at]!.limit!), at)
  return at === index ? nearest : [...nearest, line[at]!]
}

/** Whether a new claim at the end of this line would hold at once. */
export function wouldHold(line: readonly Standing[], claim: Standing): boolean {
  return holders([...line, claim]) === line.length + 1
}
