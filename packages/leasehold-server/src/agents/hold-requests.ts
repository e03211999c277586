import type { Leasehold, Mode } from 'leasehold'
import type { Clock, LeaseStore, Random } from 'leasehold/port'
import type { AheadParty } from './ahead.ts'
import type { HoldRecord } from './hold-record.ts'
import type { PathOptions } from './paths.ts'

/** What agents ask for, and what they get. */

/** Limits against forgetting, in milliseconds. */
export interface Ceilings {
  /** The longest time that one hold may last. */
  readonly maxHold: number
  /** Everything is released if no tool was called for this long. */
  readonly idle: number
  /** A hold that came after waiting is released if its agent does not ask for it within this time. */
  readonly turn: number
}

export const DEFAULT_CEILINGS: Ceilings = {
  maxHold: 8 * 3_600_000,
  idle: 2 * 3_600_000,
  turn: 10 * 60_000,
}

export interface Wanted {
  readonly keys?: readonly string[] | undefined
  readonly paths?: readonly string[] | undefined
  readonly mode?: Mode | undefined
  readonly purpose: string
  readonly agent?: string | undefined
}

export interface Waiting {
  /** Milliseconds; at most `WAIT_MAX_MS`. */
  readonly wait?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** Called every few seconds with who is ahead. */
  readonly progress?: ((message: string) => void) | undefined
}

export interface Task {
  readonly key: string
  /** An agent needs all of these capabilities to get it. */
  readonly needs?: readonly string[] | undefined
}

export interface HoldView {
  readonly hold: string
  readonly state: 'held' | 'waiting' | 'lost' | 'released'
  readonly agent: string
  readonly purpose: string
  readonly for: readonly string[]
  readonly since: string
  readonly token?: number | undefined
  readonly resources?: readonly string[] | undefined
  /** The latest end of a hold. */
  readonly until?: string | undefined
  readonly why?: string | undefined
}

export type Outcome =
  | { readonly state: 'held'; readonly record: HoldRecord }
  | {
      readonly state: 'waiting'
      readonly record: HoldRecord
      readonly ahead: readonly AheadParty[]
      readonly position: number
    }
  | { readonly state: 'busy'; readonly ahead: readonly AheadParty[] }
  | { readonly state: 'done'; readonly name: string; readonly done: DoneTask }

export interface DoneTask {
  readonly result: unknown
  readonly by: string
  readonly at: string
}

export interface AgentNotice {
  readonly about: 'asked-back' | 'your-turn' | 'lost' | 'ceiling'
  readonly hold?: string | undefined
  readonly agent?: string | undefined
  readonly text: string
}

export interface Skipped {
  busy: number
  done: number
  unable: number
}

export interface AgentHoldsOptions {
  readonly leasehold: Leasehold
  readonly store: LeaseStore
  readonly clock: Clock
  readonly random: Random
  /** The name of an agent that does not give one. */
  readonly agent: string
  readonly paths: PathOptions
  readonly ceilings?: Partial<Ceilings> | undefined
}
