import type { Quota } from './quota.ts'
import { type Right, VERBS } from './rights.ts'

/**
 * Who asks. The same object for as long as it is known, so that a change of its rights reaches what
 * is open already.
 */
export interface Principal {
  readonly name: string
  rights: readonly Right[]
  quota: Quota
  /** Why it may do nothing any more, once its token was revoked or has run out. */
  ended: string | undefined
}

/** Everybody, where no token exists: a server that was not told whom to trust trusts all. */
export function everybody(): Principal {
  return {
    name: 'everybody',
    rights: [{ verbs: VERBS, prefix: '' }],
    quota: {},
    ended: undefined,
  }
}
