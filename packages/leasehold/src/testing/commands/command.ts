import type { Labels, Mode } from '../../port/index.ts'

/**
 * A step of a random sequence. It names leases and claims by how long ago they were made (0 is the
 * latest), so that the same sequence means the same on every store, whatever its ids and tokens
 * look like, and so that a shorter sequence still means something.
 */
export type Command =
  | {
      readonly do: 'grant'
      readonly holder: string
      readonly ttl: number
      readonly grace?: number
      readonly maxLife?: number
      readonly parent?: number
      readonly labels?: Labels | undefined
      readonly claims?: readonly Place[]
      readonly ifFree?: boolean
      readonly request?: boolean
    }
  | {
      readonly do: 'claim'
      readonly lease: number
      readonly claims: readonly Place[]
      readonly ifFree?: boolean
      readonly request?: boolean
    }
  | {
      readonly do: 'release'
      readonly claim: number
      /** Only its first key. */
      readonly some?: boolean
      readonly wrong?: Wrong
      readonly request?: boolean
    }
  | {
      readonly do: 'update'
      readonly claim: number
      readonly value?: string
      readonly wrong?: Wrong
      readonly request?: boolean
    }
  | {
      readonly do: 'revoke'
      readonly target: 'lease' | 'parent' | 'prefix' | 'key' | 'claim'
      readonly at: number
      readonly after?: number
      readonly request?: boolean
    }
  | { readonly do: 'renew'; readonly leases: readonly number[] }
  | { readonly do: 'pass'; readonly ms: number }
  | {
      readonly do: 'read'
      readonly what: 'key' | 'prefix' | 'lease' | 'leases' | 'history'
      readonly at: number
      readonly limit?: number
    }
  /** Sends an earlier request again, as it was. */
  | { readonly do: 'repeat'; readonly at: number }

/** One of several stores is given a command, or is asked to watch the lease of so long ago. */
export type Turn =
  | { readonly do: 'turn'; readonly store: number; readonly command: Command }
  | { readonly do: 'watch'; readonly store: number; readonly lease: number }

/** What is made wrong about a claim that is named. */
export type Wrong = 'token' | 'lease' | 'key'

export interface Place {
  readonly key: string
  readonly mode?: Mode
  readonly limit?: number
  readonly value?: string
}

/** Leases and claims are named that were made up to so long ago. */
export const OLDEST = 9

/** Few keys, so that claims meet; one name is the beginning of another. */
export const KEYS = ['a', 'a/b', 'b', 'c'] as const
