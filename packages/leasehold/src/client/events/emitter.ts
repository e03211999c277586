import {
  callObserver,
  invalid,
  type Key,
  knownNames,
  type LeaseholdError,
  type LeaseId,
  show,
  type Token,
  unknownName,
} from '../../port/index.ts'

export interface LeaseEvent {
  readonly lease: LeaseId
  readonly ttl: number
}

export interface BrokenEvent {
  readonly lease: LeaseId
  /** How many milliseconds are left, by the holder's own careful count. */
  readonly remaining: number
  readonly by: string | undefined
  readonly why: string | undefined
}

export interface LossEvent {
  /** The lease that the claims were made under. It lives on if only claims were removed. */
  readonly lease: LeaseId
  /** What is no longer held. */
  readonly claims: readonly { readonly key: Key; readonly token: Token }[]
  /** A `lost` error with its reason; for a forced end also by whom and why. */
  readonly error: LeaseholdError
}

/** What was held when the client was closed. */
export type ClosedEvent = Pick<LossEvent, 'lease' | 'claims'>

/** A hold began, or was released. */
export interface HoldEvent {
  readonly lease: LeaseId
  readonly keys: readonly Key[]
  readonly token: Token
}

export interface AcquiredEvent extends HoldEvent {
  /** Milliseconds from the call until it was held. */
  readonly waited: number
}

/**
 * What recipes report: a closed table, so that the compiler refuses a name that is never used.
 * docs/observability.md explains each.
 */
export interface RecipeEvents {
  election:
    | 'campaigning'
    | 'stepped-behind'
    | 'elected'
    | 'asked'
    | 'resigned'
    | 'handed-over'
    | 'preempted'
    | 'lost'
    | 'retrying'
  registry:
    | 'absent'
    | 'returned'
    | 'ended'
    | 'passing'
    | 'warning'
    | 'critical'
    | 'held-back'
    | 'idle'
    | 'failed'
  pool: 'taken' | 'notice' | 'usage-record' | 'watch'
  session: 'created' | 'ended' | 'refused'
  cache: 'failed' | 'refused' | 'unstored'
  adaptive: 'failed'
  cron: 'ran' | 'failed' | 'left-out' | 'retrying'
}

/** Something that happened in a recipe, such as an election won or a check failed. */
export type RecipeEvent = {
  [Recipe in keyof RecipeEvents]: EventOf<Recipe, RecipeEvents[Recipe]>
}[keyof RecipeEvents]

interface EventOf<Recipe, Event> {
  readonly recipe: Recipe
  readonly event: Event
  readonly key: Key
  readonly token?: Token | undefined
  /** A sentence for people. */
  readonly detail?: string | undefined
  /** How much it matters; `info` if not given. */
  readonly level?: 'debug' | 'info' | 'warn' | 'error' | undefined
}

/** What a client reports about its leases, its holds, and the recipes on top. */
export interface ClientEvents {
  /** Something is held. */
  acquired: AcquiredEvent
  /** Its holder releases something. */
  released: HoldEvent
  /** Something happened in a recipe. */
  'recipe-event': RecipeEvent
  /** @deprecated Use `recipe-event`. */
  news: RecipeEvent
  /** A lease was granted; several locks may share it. */
  leased: LeaseEvent
  /** The store gave a lease its full ttl again. */
  renewed: LeaseEvent
  /** A lease could not be renewed in time. Its grace runs: nobody else can hold yet. */
  lapsed: LeaseEvent
  /** A lapsed lease was renewed after all. Everything under it is held again, tokens unchanged. */
  recovered: LeaseEvent
  /** Somebody gave a lease a last deadline, which no renewal passes. It is held until then. */
  broken: BrokenEvent
  /** Something that was held was lost: not released, not closed. Reported once, and final. */
  lost: LossEvent
  /** Something was held when its client was closed, as at the end of a program. */
  closed: ClosedEvent
}

export const CLIENT_EVENTS: Record<keyof ClientEvents, true> = {
  acquired: true,
  released: true,
  'recipe-event': true,
  news: true,
  leased: true,
  renewed: true,
  lapsed: true,
  recovered: true,
  broken: true,
  lost: true,
  closed: true,
}

/** Calls its listeners in the order in which they were added. One that throws stops no other. */
export class Emitter<Events extends object> {
  readonly #names: ReadonlySet<string>
  readonly #listeners = new Map<keyof Events, Set<(event: never) => void>>()

  constructor(names: Record<keyof Events & string, true>) {
    this.#names = knownNames<Events>(names)
  }

  /** Returns a function that stops listening. */
  on<Name extends keyof Events>(name: Name, listener: (event: Events[Name]) => void): () => void {
    if (!this.#names.has(name as string)) {
      throw unknownName(`there is no event ${show(name)}`, name, this.#names)
    }
    if (typeof listener !== 'function') {
      throw invalid(`the listener of ${show(name)} is ${show(listener)}: give a function`)
    }
    let listeners = this.#listeners.get(name)
    if (listeners === undefined) {
      listeners = new Set()
      this.#listeners.set(name, listeners)
    }
    // A new function, so that the same listener can be added twice and removed once.
    const own = (event: Events[Name]) => listener(event)
    listeners.add(own)
    return () => void listeners.delete(own)
  }

  /** Whether anybody listens: if not, the event need not be made. */
  hasListeners(name: keyof Events): boolean {
    const listeners = this.#listeners.get(name)
    return listeners !== undefined && listeners.size > 0
  }

  emit<Name extends keyof Events>(name: Name, event: Events[Name]): void {
    const listeners = this.#listeners.get(name)
    if (listeners === undefined) return
    for (const listener of [...listeners] as ((event: Events[Name]) => void)[]) {
      callObserver(listener, event)
    }
  }
}
