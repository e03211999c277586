import type { End, Key, Revision, Token } from '../../port/index.ts'

/**
 * Receives what the holders of leases must know. The runner sends it to the watches when it is
 * durable. `lease` is a slot that is still in the tables during the call.
 */
export interface NoticeSink {
  /** A claim that waited now holds all its keys. */
  holds(lease: number, revision: Revision, token: Token): void
  /** A claim was removed by force. */
  removed(lease: number, revision: Revision, key: Key, token: Token, end: End): void
  capped(lease: number, remaining: number, end: End | undefined): void
  gone(lease: number, end: End): void
}
