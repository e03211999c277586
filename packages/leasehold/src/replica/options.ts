import type { Log } from '../log/index.ts'
import type { Clock, Limits, Random, Revision } from '../port/index.ts'

export interface ReplicaOptions {
  readonly log: Log
  readonly clock: Clock
  readonly random: Random
  /** The limits of a new log. An existing log keeps its own. */
  readonly limits: Limits
  /** How long a call waits for its answer, in milliseconds. */
  readonly timeout: number
  /** How long renewals wait so that one entry carries many, in milliseconds. */
  readonly coalesce: number
  /** Save a snapshot after so many bytes of entries. */
  readonly snapshotBytes: number
  /** A member that writes nothing for so many milliseconds is removed. */
  readonly memberTtl: number
  /** New tokens are above this number. */
  readonly tokensAbove: Revision
  /** The latest version of the lease rules that this process knows. */
  readonly semantics?: number
}
