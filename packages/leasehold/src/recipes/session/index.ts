export * from './sessions.ts'
export type { SessionEvent, SessionListener, SessionWatch } from './watch.ts'
export * from './web-store.ts'
