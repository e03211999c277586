import type { Log } from '../log/index.ts'
import type { Clock, Limits, Random, Revision } from '../port/index.ts'

export interface ReplicaOptions {
  readonly log: Log
  readonly clock: Clock
  readonly random: Random
  /** Those of a log that has begun are in the log; these are for one that has not. */
  readonly limits: Limits
  /** How long a call waits for its answer, in milliseconds. */
  readonly timeout: number
  /** Renewals wait for so long for others to go with them, in milliseconds. */
  readonly coalesce: number
  /** So many bytes of entries make a snapshot worth while. */
  readonly snapshotBytes: number
  /** A member of which nothing is heard for so long is taken for dead, in milliseconds. */
  readonly memberTtl: number
  /** Tokens go on above this number, if they are not there yet. */
  readonly tokensAbove: Revision
  /** The latest version of the lease rules that this process knows. */
  readonly semantics?: number
}
