import type { Client } from '../../client/index.ts'
import type { Key, LeaseId, Token } from '../../port/index.ts'

/** A stored value, and the claim that carries it. */
export interface KeptValue {
  readonly lease: LeaseId
  readonly token: Token
  readonly value?: string | undefined
}

/** Reads the value of a key that belongs to no process: see `writeKept`. */
export async function readKept(client: Client, key: Key): Promise<KeptValue | undefined> {
  const { claims } = await client.store.read({ key, limit: 1 })
  return claims[0]
}

/**
 * Writes the value of a key on a lease of its own, which lives on for `ttl` milliseconds, whatever
 * happens to the writer. `before` is what was read. The last writer wins.
 */
export async function writeKept(
  client: Client,
  key: Key,
  value: string,
  ttl: number,
  before: KeptValue | undefined,
): Promise<void> {
  const { store, holder } = client
  if (before !== undefined) {
    const { lease, token } = before
    await store.update({ lease, key, token, value })
    await store.renew([lease])
    return
  }
  const granted = await store.grant({ holder, ttl, claims: [{ key, value }], ifFree: true })
  if (granted.outcome === 'busy') {
    await writeKept(client, key, value, ttl, granted.ahead[0]!.first)
  }
}
