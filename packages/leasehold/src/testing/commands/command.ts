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
      readonly do: 'replace'
      readonly claim: number
      readonly value?: string
      readonly mode?: Mode
      /** Only its first key. */
      readonly some?: boolean
      readonly wrong?: Wrong
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
  /** Sends an earlier request again, unchanged. */
  | { readonly do: 'repeat'; readonly at: number }

/** One of several stores gets a command, or watches a lease of some time ago. */
export type Turn =
  | { readonly do: 'turn'; readonly store: number; readonly command: Command }
  | { readonly do: 'watch'; readonly store: number; readonly lease: number }

/** What is wrong about a claim that is named. */
export type Wrong = 'token' | 'lease' | 'key'

export interface Place {
  readonly key: string
  readonly mode?: Mode
  readonly limit?: number
  readonly value?: string
}

/** How long ago leases and claims may have been made that are named. */
export const OLDEST = 9

/** Few keys, so that claims compete; one name is the beginning of another. */
export const KEYS = ['a', 'a/b', 'b', 'c'] as const
