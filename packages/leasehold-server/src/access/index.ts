export * from './access.ts'
export * from './audit.ts'
export { SESSION_MS } from './browser-sessions.ts'
export { cookieName, credentialsOf } from './credentials.ts'
export { isForeign } from './origin.ts'
export type { Principal } from './principal.ts'
export { QUOTA_NAMES, type Quota, type Usage } from './quota.ts'
export {
  allows,
  allowsOthers,
  parseRight,
  type Right,
  VERBS,
  type Verb,
  writeRight,
} from './rights.ts'
export { TokenBook, type TokenEntry, type TokenSpec } from './token-book.ts'
export { turnAway } from './turn-away.ts'
export { notWithdrawn, type ServerActs } from './withdrawal.ts'
