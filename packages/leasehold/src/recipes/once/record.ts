import type { Client } from '../../client/index.ts'
import {
  type Claim,
  type Duration,
  type Key,
  type LeaseId,
  milliseconds,
  type Time,
} from '../../port/index.ts'
import { isGone, storing } from '../refusals.ts'
import { jsonOf } from '../values/json.ts'

/** How long a record is kept by default. */
const KEEP: Duration = '30d'

/** That something was done, on a lease of its own that nobody renews. */
export interface DoneRecord {
  readonly lease: LeaseId
  /** Its result as JSON; `undefined` if it had none. */
  readonly json: string | undefined
  readonly by: string
  readonly at: Time
  readonly until: Time
}

/** Milliseconds. By default at most what the store can keep; a longer `keep` is refused. */
export function keepOf(client: Client, keep: Duration | undefined): number {
  const { max } = client.guarantees.ttl
  return keep === undefined ? Math.min(milliseconds(KEEP, 'keep'), max) : milliseconds(keep, 'keep')
}

export async function readRecord(client: Client, key: Key): Promise<DoneRecord | undefined> {
  const [claim] = (await client.store.read({ key, limit: 1 })).claims
  return claim && recordOf(claim)
}

/** Writes the record, unless there is one: the first one wins, and is returned. */
export async function writeRecord(
  client: Client,
  key: Key,
  result: unknown,
  keep: number,
): Promise<DoneRecord | undefined> {
  const value = result === undefined ? undefined : jsonOf(result, 'the result')
  const { store, holder } = client
  const claims = [{ key, value }]
  const granting = store.grant({ holder, ttl: keep, claims, ifFree: true })
  const answer = await storing('the result', granting)
  return answer.outcome === 'busy' ? recordOf(answer.ahead[0]!.first) : undefined
}

/** Returns whether there was a record. */
export async function removeRecord(client: Client, key: Key, why: string): Promise<boolean> {
  const record = await readRecord(client, key)
  if (record === undefined) return false
  const { lease } = record
  try {
    await client.store.revoke({ target: { lease }, by: client.holder, why })
    return true
  } catch (error) {
    if (isGone(error)) return false
    throw error
  }
}

function recordOf({ lease, value: json, holder: by, claimedAt: at, until }: Claim): DoneRecord {
  return { lease, json, by, at, until }
}
