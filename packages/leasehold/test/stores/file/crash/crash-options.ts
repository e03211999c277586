import type { GrantRequest } from '../../../../src/port/index.ts'

/** The output of a process under load. */
export type Line =
  | { did: 'opened' }
  | ({ did: 'granted'; request: string; spec: GrantRequest } & Taken)
  | ({ did: 'claimed' } & Taken)
  | { did: 'busy'; revision: number; key: string; token: number }
  | { will: 'release'; key: string; token: number }
  | { did: 'released'; key: string; token: number; revision: number }
  | { did: 'refused'; key: string; token: number }
  | { will: 'revoke'; lease: string }
  | { did: 'revoked'; lease: string; revision: number }
  | { did: 'removed'; key: string; token: number }

export interface Taken {
  lease: string
  ttl: number
  key: string
  token: number
  revision: number
}

/** Small, so that segments end and snapshots are written all the time. */
export const CRASH_OPTIONS = {
  segmentBytes: 32 * 1024,
  snapshotBytes: 32 * 1024,
  limits: { requests: 64, ended: 64, history: 64, idleKeys: 64, events: 256 },
}
