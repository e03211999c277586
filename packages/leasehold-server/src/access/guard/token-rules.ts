import {
  type ClaimSpec,
  delegate,
  type Key,
  LeaseholdError,
  type LeaseStore,
  type RevokeTarget,
} from 'leasehold/port'
import {
  type AccessTokens,
  CREATE_ADMINISTRATOR,
  TOKENS_PREFIX,
  type TokenChange,
} from '../identity/access-tokens.ts'

/**
 * A store whose callers cannot lock themselves out. It refuses a change after which access tokens
 * exist and none of them can administer. Nobody could undo that over the network.
 */
export function withTokenRules(store: LeaseStore, tokens: AccessTokens): LeaseStore {
  const check = async (change: TokenChange): Promise<void> => {
    const why = await tokens.lockOut(change)
    if (why === undefined) return
    throw new LeaseholdError(
      'forbidden',
      `${why}. Create an administrator first: ${CREATE_ADMINISTRATOR}`,
    )
  }
  const checkClaims = async (claims: readonly ClaimSpec[]): Promise<void> => {
    for (const { key, value } of claims) {
      if (!isTokenKey(key)) continue
      const adds = tokens.parse(key.slice(TOKENS_PREFIX.length), value ?? '', '')?.entry
      // A value that is not a token gives no access, but ends that of everybody.
      await check({ adds: adds ?? { name: key.slice(TOKENS_PREFIX.length), rights: [] } })
    }
  }
  return delegate(store, {
    grant: (request) =>
      hasTokenKey(request?.claims)
        ? checkClaims(request.claims).then(() => store.grant(request))
        : store.grant(request),
    claim: (request) =>
      hasTokenKey(request?.claims)
        ? checkClaims(request.claims).then(() => store.claim(request))
        : store.claim(request),
    update: (request) =>
      isTokenKey(request?.key)
        ? checkClaims([request]).then(() => store.update(request))
        : store.update(request),
    revoke: (request) => {
      const removes = removalBy(request?.target, tokens)
      if (removes === undefined) return store.revoke(request)
      return check({ removes }).then(() => store.revoke(request))
    },
  })
}

/** Which tokens the end of this target removes; `undefined` if it cannot remove any. */
function removalBy(
  target: Partial<Record<'lease' | 'key' | 'prefix', string>> | RevokeTarget | undefined,
  tokens: AccessTokens,
): TokenChange['removes'] {
  const { lease, key, prefix } = (target ?? {}) as Partial<Record<string, string>>
  if (typeof lease === 'string' && tokens.isTokenLease(lease)) return (one) => one.lease === lease
  const nameOf = (one: Parameters<NonNullable<TokenChange['removes']>>[0]) =>
    TOKENS_PREFIX + one.entry.name
  if (isTokenKey(key)) return (one) => nameOf(one) === key
  if (typeof prefix !== 'string') return undefined
  const isAbove = prefix.startsWith(TOKENS_PREFIX) || TOKENS_PREFIX.startsWith(prefix)
  return isAbove ? (one) => nameOf(one).startsWith(prefix) : undefined
}

/** Requests arrive here before the store has checked their arguments. */
function hasTokenKey(claims: unknown): claims is readonly ClaimSpec[] {
  return Array.isArray(claims) && claims.some((claim) => isTokenKey(claim?.key))
}

function isTokenKey(key: unknown): key is Key {
  return typeof key === 'string' && key.startsWith(TOKENS_PREFIX)
}
