import type { Key, LeaseholdError, LeaseId, Token } from '../port/index.ts'

export interface LeaseNews {
  readonly lease: LeaseId
  readonly ttl: number
}

export interface BrokenNews {
  readonly lease: LeaseId
  /** Milliseconds in which to come to an end, by the holder's own careful count. */
  readonly remaining: number
  readonly by: string | undefined
  readonly why: string | undefined
}

export interface LossNews {
  /** The lease that the claims were made under. It may live on where only claims were taken. */
  readonly lease: LeaseId
  /** What was held, or waited for, and is not any more. */
  readonly claims: readonly { readonly key: Key; readonly token: Token }[]
  /** A `lost` with its reason; for a forced end also by whom and why. */
  readonly error: LeaseholdError
}

/** Something was taken, or given back. */
export interface HoldNews {
  readonly lease: LeaseId
  readonly keys: readonly Key[]
  readonly token: Token
}

export interface AcquiredNews extends HoldNews {
  /** How many milliseconds it took from asking to holding. */
  readonly waited: number
}

/**
 * What recipes tell of, each in one word: a closed table, so that whoever listens is told by the
 * compiler of a word that is never said. docs/observability.md says what each stands for.
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
  pool: 'taken' | 'notice' | 'books' | 'watch'
  session: 'created' | 'ended' | 'refused'
  cache: 'failed' | 'refused' | 'unstored'
  adaptive: 'failed'
}

/** Something that happened in a recipe, such as an election won or a check failed. */
export type RecipeNews = {
  [Recipe in keyof RecipeEvents]: News<Recipe, RecipeEvents[Recipe]>
}[keyof RecipeEvents]

interface News<Recipe, Event> {
  readonly recipe: Recipe
  readonly event: Event
  readonly key: Key
  readonly token?: Token | undefined
  /** A sentence for people. */
  readonly detail?: string | undefined
  /** How much it matters; `info` if not given. */
  readonly level?: 'debug' | 'info' | 'warn' | 'error' | undefined
}

/** What a client tells about its leases, what is held under them, and the recipes on top. */
export interface ClientEvents {
  /** What was asked for is held. */
  acquired: AcquiredNews
  /** What was held is being given back by its holder. */
  released: HoldNews
  news: RecipeNews
  /** A lease was granted; several locks may share it. */
  leased: LeaseNews
  /** The store gave a lease its full ttl again. */
  renewed: LeaseNews
  /** A lease could not be renewed in time. Its grace runs: nobody else can hold yet. */
  lapsed: LeaseNews
  /** A lapsed lease was renewed after all. Everything under it is held again, tokens unchanged. */
  recovered: LeaseNews
  /** Somebody gave a lease a last deadline, which no renewal passes. It is held until then. */
  broken: BrokenNews
  /** What was held is held no more. Told once, and never taken back. */
  lost: LossNews
}

/** Calls its listeners in the order in which they came; one that throws harms nobody else. */
export class Emitter<Events> {
  readonly #listeners = new Map<keyof Events, Set<(news: never) => void>>()

  /** Answers with a function that ends the listening. */
  on<Name extends keyof Events>(name: Name, listener: (news: Events[Name]) => void): () => void {
    let listeners = this.#listeners.get(name)
    if (listeners === undefined) {
      listeners = new Set()
      this.#listeners.set(name, listeners)
    }
    // A function of its own, so that the same listener may be given twice and ended once.
    const own = (news: Events[Name]) => listener(news)
    listeners.add(own)
    return () => void listeners.delete(own)
  }

  /** Whether anybody listens: where nobody does, the news need not be put together. */
  heard(name: keyof Events): boolean {
    const listeners = this.#listeners.get(name)
    return listeners !== undefined && listeners.size > 0
  }

  emit<Name extends keyof Events>(name: Name, news: Events[Name]): void {
    const listeners = this.#listeners.get(name)
    if (listeners === undefined) return
    for (const listener of [...listeners] as ((news: Events[Name]) => void)[]) {
      try {
        listener(news)
      } catch (error) {
        // A heartbeat must go on; but the fault of a listener should not vanish either.
        process.emitWarning(error instanceof Error ? error : new Error(String(error)))
      }
    }
  }
}
