import type { End, Key, Revision, Token } from '../port/index.ts'

/**
 * What the kernel says to the holders of leases, as it happens; the runner passes it on when it is
 * durable. `lease` is a slot, which still stands in the tables during the call.
 */
export interface Notices {
  /** A claim that waited now holds all its keys. */
  holds(lease: number, revision: Revision, token: Token): void
  /** A claim was taken away by force. */
  removed(lease: number, revision: Revision, key: Key, token: Token, end: End): void
  capped(lease: number, remaining: number, end: End | undefined): void
  gone(lease: number, end: End): void
}
