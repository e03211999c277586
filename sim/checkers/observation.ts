import type {
  Ahead,
  Claim,
  ClaimSpec,
  Key,
  KeyEntry,
  LeaseId,
  OwnClaim,
  Revision,
  RevokeTarget,
  Tenure,
  Token,
} from 'leasehold/port'

/** A fact about one revision that a client received. */
export type Observation = { readonly client: string; readonly revision: Revision } & (
  | {
      readonly type: 'placed'
      readonly lease: LeaseId
      readonly claims: readonly ClaimSpec[]
      readonly ifFree: boolean
      readonly replaces: Token | undefined
      readonly token: Token
      readonly holds: boolean
      readonly ahead: readonly Ahead[]
    }
  | {
      readonly type: 'busy'
      readonly claims: readonly ClaimSpec[]
      readonly ahead: readonly Ahead[]
    }
  | {
      readonly type: 'released'
      readonly lease: LeaseId
      readonly keys: readonly Key[]
      readonly token: Token
    }
  | {
      readonly type: 'updated'
      readonly key: Key
      readonly token: Token
      readonly value: string | undefined
    }
  | {
      readonly type: 'revoked'
      readonly target: RevokeTarget
      readonly leases: number
      readonly claims: number
      readonly more: boolean
    }
  | { readonly type: 'keys'; readonly keys: readonly KeyEntry[]; readonly limit: number }
  | {
      readonly type: 'prefix'
      readonly prefix: string
      readonly after: Key
      readonly more: boolean
      readonly keys: readonly KeyEntry[]
    }
  | { readonly type: 'lease'; readonly lease: LeaseId; readonly claims: readonly Claim[] }
  | { readonly type: 'history'; readonly key: Key; readonly tenures: readonly Tenure[] }
  | { readonly type: 'standing'; readonly lease: LeaseId; readonly claims: readonly OwnClaim[] }
  | { readonly type: 'holds'; readonly lease: LeaseId; readonly token: Token }
  | {
      readonly type: 'removed'
      readonly lease: LeaseId
      readonly key: Key
      readonly token: Token
    }
  | { readonly type: 'gone'; readonly lease: LeaseId }
)
