export * from './access.ts'
export * from './audit/audit.ts'
export { notWithdrawn, type ServerActions } from './guard/server-actions.ts'
export {
  type AccessTokenEntry,
  type AccessTokenSpec,
  AccessTokens,
  CREATE_ADMINISTRATOR,
  type TokenChange,
} from './identity/access-tokens.ts'
export { SESSION_MS } from './identity/browser-sessions.ts'
export { cookieName, credentialsOf } from './identity/credentials.ts'
export { isForeign } from './identity/origin.ts'
export type { Principal } from './identity/principal.ts'
export { refuseUpgrade } from './identity/refuse-upgrade.ts'
export { QUOTA_NAMES, type Quota, type Usage } from './quotas/quota.ts'
export {
  allows,
  allowsKey,
  allowsOthers,
  forbidden,
  parseRight,
  type Right,
  SERVER_PREFIX,
  VERBS,
  type Verb,
  writeRight,
} from './rights.ts'
