import type { Quota } from '../quotas/quota.ts'
import { type Right, VERBS } from '../rights.ts'

/**
 * An authenticated caller. The object stays the same as long as its access token exists, so that a
 * change of its rights applies to open connections.
 */
export interface Principal {
  readonly name: string
  rights: readonly Right[]
  quota: Quota
  /** Set when its access token was revoked or has expired: the reason. */
  ended: string | undefined
}

/** The principal of all callers while no access token exists. */
export function everybody(): Principal {
  return {
    name: 'everybody',
    rights: [{ verbs: VERBS, prefix: '' }],
    quota: {},
    ended: undefined,
  }
}
