import type { Leasehold, Mode } from 'leasehold'
import type { Clock, LeaseStore, Random } from 'leasehold/port'
import type { AheadParty } from './ahead.ts'
import type { Ceilings } from './ceilings.ts'
import type { HoldRecord } from './hold-record.ts'
import type { PathOptions } from './paths.ts'

/** What agents ask for, and what they get. */

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

export interface Skipped {
  busy: number
  done: number
  unable: number
  /** Not reached before the call had to answer. */
  untried: number
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
