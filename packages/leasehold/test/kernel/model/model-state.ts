import type { End, GrantRequest, LeaseId, Mode } from '../../../src/port/index.ts'

export interface ModelLease {
  readonly id: LeaseId
  readonly spec: GrantRequest
  readonly grantedAt: number
  renewedAt: number
  endOfLife: number
  cappedBy: End | undefined
}

export interface ModelClaim {
  readonly key: string
  readonly token: number
  readonly lease: ModelLease
  readonly mode: Mode
  readonly limit: number | undefined
  value: string | undefined
  readonly claimedAt: number
  heldSince: number | undefined
}

export interface ModelNotice {
  readonly lease: LeaseId
  readonly type: 'holds' | 'removed' | 'capped' | 'gone'
  readonly token?: number
  readonly key?: string
}
