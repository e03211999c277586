import type { Ahead, ClaimSpec, Event, Key, LeaseId, Mode, Token } from 'leasehold/port'

/** A claim as the model knows it. */
export interface ModelClaim {
  readonly key: Key
  readonly token: Token
  readonly lease: LeaseId
  readonly holder: string
  readonly mode: Mode
  readonly limit: number
  value: string | undefined
  /** An event has said that it holds. */
  isHeld: boolean
}

/**
 * All claims at one revision, rebuilt from events alone. It shares no code with the kernel: who
 * holds a key is worked out here once more, from the text of the port.
 */
export class Model {
  revision = 0
  readonly #keys = new Map<Key, ModelClaim[]>()
  /** The greatest token that each key ever had. */
  readonly #highest = new Map<Key, Token>()
  /** For each key who held it last and does not any more. */
  readonly #lastHeld = new Map<Key, Token>()

  readonly #held = new Set<string>()
  /** Whether all is known that ever happened. */
  complete = true

  reset(revision: number, claimed: readonly Event[]): void {
    this.#keys.clear()
    this.#lastHeld.clear()
    this.complete = false
    for (const event of claimed) this.#add(event)
    for (const [key, list] of this.#keys) {
      list.sort((a, b) => a.token - b.token)
      for (const claim of list.slice(0, this.holders(key))) claim.isHeld = true
    }
    this.revision = revision
  }

  /** Carries out all events of one revision. Returns what is wrong with them. */
  apply(revision: number, events: readonly Event[]): string | undefined {
    this.revision = revision
    const held = new Set<string>()
    for (const { key, token, type } of events) {
      const claim = type === 'removed' ? this.find(key, token) : undefined
      if (claim && this.holds(claim)) held.add(`${key} ${token}`)
    }
    for (const event of events) {
      const wrong = this.#change(event, held)
      if (wrong) return `revision ${revision}: ${wrong}`
    }
    for (const { key } of events) {
      const wrong = this.#misannounced(key)
      if (wrong) return `revision ${revision}: ${wrong}`
    }
    for (const { lease, end, type } of events) {
      const whole = type === 'removed' && (end?.reason === 'expired' || end?.reason === 'broken')
      if (whole && this.of(lease).length > 0) {
        return `revision ${revision}: lease ${lease} has ${end.reason} and keeps ${this.of(lease)[0]!.key}`
      }
    }
    return undefined
  }

  on(key: Key): readonly ModelClaim[] {
    return this.#keys.get(key) ?? []
  }

  under(prefix: string): Key[] {
    return [...this.#keys.keys()].filter((key) => key.startsWith(prefix)).sort()
  }

  of(lease: LeaseId): ModelClaim[] {
    return [...this.#keys.values()].flatMap((list) => list.filter((one) => one.lease === lease))
  }

  find(key: Key, token: Token): ModelClaim | undefined {
    return this.on(key).find((claim) => claim.token === token)
  }

  lastHeld(key: Key): Token | undefined {
    return this.#lastHeld.get(key)
  }

  /** Whether this claim held the key, and has ended. */
  hasHeld(key: Key, token: Token): boolean {
    return this.#held.has(`${key} ${token}`)
  }

  /** How many claims hold the key: always the first ones. */
  holders(key: Key): number {
    const list = this.on(key)
    let held = 0
    while (held < list.length && mayJoin(list[held]!, list, held)) held++
    return held
  }

  holds({ key, token }: ModelClaim): boolean {
    return this.on(key).findIndex((one) => one.token === token) < this.holders(key)
  }

  /** Whether all that is left of a claim on several keys holds. */
  holdsAll(lease: LeaseId, token: Token): boolean {
    return this.of(lease).every((claim) => claim.token !== token || this.holds(claim))
  }

  /** Whether a new claim would hold at once. */
  isFree({ key, mode = 'exclusive', limit = 0 }: ClaimSpec): boolean {
    const list = this.on(key)
    return this.holders(key) === list.length && mayJoin({ mode, limit }, list, list.length)
  }

  /** What is wrong with what an answer says to stand before something, if anything is. */
  misjudged({ key, count, first }: Ahead, own: number): string | undefined {
    const list = this.on(key)
    const ahead = list.length - own
    if (ahead !== count) return `${key} has ${ahead} claims before it, not ${count}`
    if (list[0]?.token !== first.token)
      return `${key} has ${list[0]?.token} first, not ${first.token}`
    return undefined
  }

  /** Whether events have announced as held exactly the claims that hold the key. */
  #misannounced(key: Key): string | undefined {
    const held = this.holders(key)
    const wrong = this.on(key).find(({ isHeld }, at) => isHeld !== at < held)
    if (wrong === undefined) return undefined
    const said = wrong.isHeld ? 'waits, and was announced' : 'holds, and was not announced'
    return `${key}: token ${wrong.token} ${said} as held`
  }

  #change(event: Event, held: ReadonlySet<string>): string | undefined {
    const { type, key, token, lease, value } = event
    if (type === 'claimed') {
      const highest = this.#highest.get(key) ?? 0
      if (token <= highest) return `${key}: token ${token} was claimed after ${highest}`
      this.#add(event)
      return undefined
    }
    const list = this.#keys.get(key) ?? []
    const at = list.findIndex((claim) => claim.token === token && claim.lease === lease)
    if (at === -1) return `${key}: ${type} token ${token} of ${lease}, which is not there`
    if (type === 'updated') {
      list[at]!.value = value
      return undefined
    }
    if (type === 'held') {
      if (list[at]!.isHeld) return `${key}: token ${token} was announced as held twice`
      list[at]!.isHeld = true
      return undefined
    }
    if (held.has(`${key} ${token}`)) {
      this.#lastHeld.set(key, token)
      this.#held.add(`${key} ${token}`)
    }
    this.#keys.set(key, list.toSpliced(at, 1))
    if (list.length === 1) this.#keys.delete(key)
    return undefined
  }

  #add({ key, token, lease, holder, mode, limit = 0, value }: Event): void {
    const list = this.#keys.get(key)
    const claim = { key, token, lease, holder, mode, limit, value, isHeld: false }
    if (list) list.push(claim)
    else this.#keys.set(key, [claim])
    this.#highest.set(key, Math.max(token, this.#highest.get(key) ?? 0))
  }
}

/** The rule of the port: an exclusive claim must be first; a shared one stands among few enough. */
function mayJoin(
  { mode, limit }: { readonly mode: Mode; readonly limit: number },
  list: readonly ModelClaim[],
  before: number,
): boolean {
  if (before === 0) return true
  if (mode !== 'shared' || (limit > 0 && before >= limit)) return false
  return list.slice(0, before).every((claim) => claim.mode === 'shared')
}
